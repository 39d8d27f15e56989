#include "cli/options.h"

#include "engine/base/keep.h"
#include "engine/child/keep.h"

#include <sys/socket.h>

int command_keep(const struct options *o, struct err *err)
{
    struct runner_paths paths;
    int type = 0;
    socklen_t size = sizeof type;
    (void)o;
    if (getsockopt(KEEP_SOCKET_FD, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_SEQPACKET)
        return err_set(err, ERR_USAGE, "keep", "is started by libattnscope-capture, with a socket");
    return runner_find_paths(&paths, err) != 0 ? -1 : keep_serve(&paths, KEEP_SOCKET_FD);
}
