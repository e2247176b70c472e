"""Carries what comes to a listening socket of this machine into the cluster's network, where nobody else can go."""
import socket
import threading


def serve(listener, address):
    threading.Thread(target=_accept_for_ever, args=(listener, address), daemon=True).start()


def _accept_for_ever(listener, address):
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_join, args=(connection, address), daemon=True).start()


def _join(near, address):
    try:
        far = socket.create_connection(address, timeout=10)
    except OSError:
        near.close()
        return
    far.settimeout(None)
    back = threading.Thread(target=_copy, args=(far, near), daemon=True)
    back.start()
    _copy(near, far)
    back.join()
    near.close()
    far.close()


def _copy(source, sink):
    try:
        while data := source.recv(1 << 16):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, sink):  # so that the other direction ends, too
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
