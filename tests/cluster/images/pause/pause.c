// Keeps a pod's namespaces while its containers come and go, and reaps what they leave, as the first process of the pod.
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int signal) { _exit(signal == SIGCHLD); }

static void reap(int signal) {
  (void)signal;
  while (waitpid(-1, NULL, WNOHANG) > 0) {
  }
}

int main(void) {
  if (signal(SIGTERM, end) == SIG_ERR || signal(SIGINT, end) == SIG_ERR || signal(SIGCHLD, reap) == SIG_ERR) return 1;
  for (;;) pause();
}
