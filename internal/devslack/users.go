package devslack

func (s *Server) usersInfo(c *apiCall) (reply, error) {
	u := s.ws.user(c.args.str("user"))
	if u == nil {
		return nil, fail("user_not_found")
	}
	return reply{"user": s.userObject(u)}, nil
}

func (s *Server) usersList(c *apiCall) (reply, error) {
	members := []reply{}
	for _, u := range s.ws.Users {
		if u.Kind != KindExternal { // people of other organizations are not members of this workspace
			members = append(members, s.userObject(u))
		}
	}
	return listPage(c.args, "members", members, 1000)
}

// userObject is a user as users.info answers. Which flags are there at all
// tells the kinds apart: a deactivated user has lost most of them.
func (s *Server) userObject(u *User) reply {
	profile := reply{
		"title": "", "phone": "", "skype": "", "real_name": u.RealName, "real_name_normalized": u.RealName,
		"display_name": u.Name, "display_name_normalized": u.Name, "fields": nil, "status_text": "",
		"status_emoji": "", "status_expiration": 0, "avatar_hash": "g" + u.ID, "first_name": u.RealName,
		"last_name": "", "team": u.TeamID,
	}
	out := reply{"id": u.ID, "team_id": u.TeamID, "name": u.Name, "deleted": u.Kind == KindDeactivated,
		"profile": profile, "is_bot": u.Kind == KindBot, "is_app_user": false, "updated": 1700000000}
	if u.Kind == KindBot {
		profile["api_app_id"], profile["bot_id"], profile["always_active"] = u.AppID, u.BotID, true
		out["is_workflow_bot"] = u.Workflow
	}
	if u.Kind == KindDeactivated {
		out["is_forgotten"] = false
		return out
	}
	out["real_name"], out["color"] = u.RealName, "4bbe2e"
	out["tz"], out["tz_label"], out["tz_offset"] = "Etc/UTC", "Coordinated Universal Time", 0
	out["is_admin"], out["is_owner"], out["is_primary_owner"] = u.Admin, u.Admin, u.Admin
	out["is_restricted"], out["is_ultra_restricted"] = u.Kind == KindGuest, false
	out["is_email_confirmed"], out["who_can_share_contact_card"] = true, "EVERYONE"
	if u.Kind == KindExternal {
		out["is_stranger"] = true
	}
	return out
}

func (s *Server) usergroupsList(c *apiCall) (reply, error) {
	groups := []reply{}
	for _, g := range s.ws.Groups {
		object := reply{"id": g.ID, "team_id": s.ws.Team.ID, "is_usergroup": true, "is_subteam": true, "name": g.Name,
			"description": "", "handle": g.Handle, "is_external": false, "date_create": 1700000000,
			"date_update": 1700000000, "date_delete": 0, "auto_type": nil, "auto_provision": false,
			"created_by": s.ws.Users[0].ID, "updated_by": s.ws.Users[0].ID, "deleted_by": nil,
			"prefs": reply{"channels": []string{}, "groups": []string{}}, "user_count": len(g.Users)}
		if c.args.flag("include_users") {
			object["users"] = g.Users
		}
		groups = append(groups, object)
	}
	return reply{"usergroups": groups}, nil
}

func (s *Server) usergroupsUsersList(c *apiCall) (reply, error) {
	g := s.ws.group(c.args.str("usergroup"))
	if g == nil {
		return nil, fail("no_such_subteam")
	}
	return reply{"users": g.Users}, nil
}
