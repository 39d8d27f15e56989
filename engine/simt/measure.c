/* What only a GPU can tell. */
#include "engine/child/debuggee/debuggee.h"

#include <stdio.h>
#include <unistd.h>

static json_t *decline(const char *what, const struct launch_request *request, char *why, size_t size)
{
    close(request->fd);
    snprintf(why, size, "%s needs a GPU", what);
    return NULL;
}

json_t *debuggee_profile(const struct asc_kernel *kernel, const struct launch_request *request, const json_t *asked,
                         char *why, size_t size)
{
    (void)kernel;
    (void)asked;
    return decline("profile", request, why, size);
}

json_t *debuggee_bench(const struct asc_kernel *kernel, const struct launch_request *request, const json_t *asked,
                       char *why, size_t size)
{
    (void)kernel;
    (void)asked;
    return decline("bench", request, why, size);
}
