"""How a machine is made out of nothing but the kernel."""
# Namespaces for whatever is run in them, with a process 1 that buries the orphans of containers.
OWN_NAMESPACES = ["unshare", "--mount", "--net", "--uts", "--ipc", "--pid", "--fork", "--kill-child",
                  "--propagation", "private", "sh", "-c", '"$@" & wait $!', "sh"]
