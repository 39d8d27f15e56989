#include "engine/capture/modules.h"

#include <link.h>
#include <stdbool.h>
#include <string.h>

static const char note_name[] = "attnscope";

static void add(struct modules *modules, struct asc_noted_module *module)
{
    for (int i = 0; i < modules->n; i++)
        if (modules->of[i] == module)
            return;
    if (modules->n < MODULES_MAX)
        modules->of[modules->n++] = module;
}

static size_t aligned(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* A note: header, name, description, each aligned (ELF, "Note Section"). The description is how far the record is from
   it. */
static int read_notes(struct dl_phdr_info *object, size_t size, void *ctx)
{
    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type != PT_NOTE)
            continue;
        const char *at = (const char *)(uintptr_t)(object->dlpi_addr + part->p_vaddr), *end = at + part->p_memsz;
        const size_t align = part->p_align == 8 ? 8 : 4;
        while ((size_t)(end - at) >= sizeof(ElfW(Nhdr))) {
            ElfW(Nhdr) note;
            int64_t distance;
            memcpy(&note, at, sizeof note);
            const char *name = at + sizeof note, *description = name + aligned(note.n_namesz, align);
            if ((size_t)(end - name) < aligned(note.n_namesz, align) + note.n_descsz)
                break;
            if (note.n_type == 1 && note.n_namesz == sizeof note_name && note.n_descsz == sizeof distance &&
                memcmp(name, note_name, sizeof note_name) == 0) {
                memcpy(&distance, description, sizeof distance);
                add(ctx, (struct asc_noted_module *)(uintptr_t)(description + distance));
            }
            at = description + aligned(note.n_descsz, align);
        }
    }
    return 0;
}

void modules_find(struct modules *modules)
{
    dl_iterate_phdr(read_notes, modules);
}
