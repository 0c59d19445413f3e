package devslack

import (
	"context"
	"net"
	"sync"
)

// Pipe is a net.Listener whose connections never leave the process: every
// dial is one net.Pipe. Servers and clients run over it unchanged, also inside
// a testing/synctest bubble, where a real socket would stop the fake clock.
type Pipe struct {
	accept chan net.Conn
	done   chan struct{}
	once   sync.Once
}

// NewPipe returns a listener that is ready to be served and dialled.
func NewPipe() *Pipe {
	return &Pipe{accept: make(chan net.Conn), done: make(chan struct{})}
}

// Accept waits for the next dial.
func (p *Pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.accept:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and refuses further dials; open connections live on.
func (p *Pipe) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

// Addr names the listener; it is not an address that can be dialled elsewhere.
func (p *Pipe) Addr() net.Addr { return pipeAddr{} }

// DialContext connects to the listener, whatever network and address say: it
// fits http.Transport.DialContext and websocket.Dialer.NetDialContext.
func (p *Pipe) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.accept <- server:
		return client, nil
	case <-p.done:
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: net.ErrClosed}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }
