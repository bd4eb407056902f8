package pgserver

import "syscall"

// endWithParent shuts the server down when the thread that starts it ends, and
// so at the latest with this process.
func endWithParent(attributes *syscall.SysProcAttr) {
	attributes.Pdeathsig = syscall.SIGINT
}
