/* The translation units with probes that make up this debuggee: their constructors have added them before main(). */
#include "engine/child/debuggee/debuggee.h"
#include "engine/trace/live.h"

#include <stddef.h>

static struct asc_module *modules;

void asc_module_add(struct asc_module *module)
{
    module->next = modules;
    modules = module;
}

uint32_t debuggee_abi(void)
{
    for (const struct asc_module *module = modules; module; module = module->next)
        if (module->abi != ASC_ABI_VERSION)
            return module->abi;
    return asc_kernel_abi;
}

int asc_bind(const struct asc_device *device)
{
    for (const struct asc_module *module = modules; module; module = module->next) {
        const int status = module->bind(device);
        if (status)
            return status;
    }
    return 0;
}

int asc_stage(const uint32_t window[2])
{
    int status = -1;
    for (const struct asc_module *module = modules; module; module = module->next)
        if (module->stage && (status = module->stage(window)))
            return status;
    return status;
}
