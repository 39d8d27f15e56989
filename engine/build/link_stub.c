#include "engine/build/link_stub.h"

#include "engine/simt/simt.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* MISSING_CODE calls asc_not_linked() in the place of its caller, with the name as the argument (ABI of the machine).
 */
#if defined(__x86_64__)
#define MACHINE EM_X86_64
#define IS_CALL(type) ((type) == R_X86_64_PLT32)
#define MISSING_CODE "    leaq 1f(%%rip), %%rdi\n    jmp asc_not_linked@PLT\n"
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#define IS_CALL(type) ((type) == R_AARCH64_CALL26 || (type) == R_AARCH64_JUMP26)
#define MISSING_CODE "    adr x0, 1f\n    b asc_not_linked\n"
#else
#error "the CPU executor runs on x86-64 and aarch64"
#endif

#define OBJECT_MAX_BYTES (1L << 30)

struct object {
    const char *path;     /* borrowed */
    unsigned char *bytes; /* owned */
    size_t n_bytes;
    uint64_t n_sections;
};

static int object_read(struct object *o, const char *path, struct err *err)
{
    o->path = path;
    FILE *f = fopen(path, "rb");
    if (!f)
        return err_errno(err, path, "cannot open the object file");
    int rc = -1;
    long end = -1;
    if (fseek(f, 0, SEEK_END) || (end = ftell(f)) < 0 || fseek(f, 0, SEEK_SET))
        err_errno(err, path, "cannot read the object file");
    else if (end > OBJECT_MAX_BYTES)
        err_set(err, ERR_BUILD, path, "the object file is too large: %ld bytes", end);
    else if (!(o->bytes = malloc(end ? (size_t)end : 1)))
        err_no_memory(err, path, "the object file");
    else if (fread(o->bytes, 1, (size_t)end, f) != (size_t)end)
        err_set(err, ERR_SYSTEM, path, "cannot read the object file");
    else {
        o->n_bytes = (size_t)end;
        rc = 0;
    }
    fclose(f);
    return rc;
}

/* `count` records of `size` bytes at `offset`, or NULL where they do not lie inside the file. */
static const unsigned char *object_at(const struct object *o, uint64_t offset, uint64_t count, uint64_t size)
{
    if (offset > o->n_bytes || (size && count > (o->n_bytes - offset) / size))
        return NULL;
    return o->bytes + offset;
}

/* index < n_sections, which header_get has checked against the file. */
static Elf64_Shdr section_get(const struct object *o, const Elf64_Ehdr *header, uint64_t index)
{
    Elf64_Shdr section;
    memcpy(&section, o->bytes + header->e_shoff + index * sizeof section, sizeof section);
    return section;
}

static int header_get(struct object *o, Elf64_Ehdr *header, struct err *err)
{
    if (o->n_bytes < sizeof *header || memcmp(o->bytes, ELFMAG, SELFMAG) != 0)
        return err_set(err, ERR_BUILD, o->path, "not an ELF object file");
    memcpy(header, o->bytes, sizeof *header);
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
        header->e_type != ET_REL || header->e_machine != MACHINE)
        return err_set(err, ERR_BUILD, o->path, "not a relocatable ELF64 object of this machine");
    if (header->e_shentsize != sizeof(Elf64_Shdr))
        return err_set(err, ERR_BUILD, o->path, "section headers of %u bytes, expected %zu", header->e_shentsize,
                       sizeof(Elf64_Shdr));
    o->n_sections = header->e_shnum;
    if (!o->n_sections && header->e_shoff) { /* SHN_LORESERVE or more (templates under -g): the size of section 0 */
        const unsigned char *at = object_at(o, header->e_shoff, 1, sizeof(Elf64_Shdr));
        Elf64_Shdr first;
        if (!at)
            return err_set(err, ERR_BUILD, o->path, "section headers past the end of the file");
        memcpy(&first, at, sizeof first);
        o->n_sections = first.sh_size;
    }
    if (!object_at(o, header->e_shoff, o->n_sections, sizeof(Elf64_Shdr)))
        return err_set(err, ERR_BUILD, o->path, "section headers past the end of the file");
    return 0;
}

/* A name that is put into assembly. Mangled names and C identifiers only have these. */
static bool name_ok(const char *name)
{
    return name[0] && strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.$") == strlen(name);
}

static int symbols_write(const struct object *o, const Elf64_Ehdr *header, const Elf64_Shdr *symtab, FILE *out,
                         struct err *err)
{
    if (symtab->sh_link >= o->n_sections)
        return err_set(err, ERR_BUILD, o->path, "a symbol table without names");
    const Elf64_Shdr strings = section_get(o, header, symtab->sh_link);
    const uint64_t count = symtab->sh_size / sizeof(Elf64_Sym);
    const unsigned char *symbols = object_at(o, symtab->sh_offset, count, sizeof(Elf64_Sym));
    const char *names = (const char *)object_at(o, strings.sh_offset, strings.sh_size, 1);
    if (!symbols || !names || !strings.sh_size || names[strings.sh_size - 1])
        return err_set(err, ERR_BUILD, o->path, "a symbol table past the end of the file");
    for (uint64_t i = 0; i < count; i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, symbols + i * sizeof symbol, sizeof symbol);
        if (symbol.st_shndx != SHN_UNDEF || ELF64_ST_TYPE(symbol.st_info) != STT_TLS)
            continue;
        if (symbol.st_name >= strings.sh_size)
            return err_set(err, ERR_BUILD, o->path, "a symbol name past the end of the name table");
        const char *name = names + symbol.st_name;
        if (!name_ok(name))
            return err_set(err, ERR_BUILD, o->path, "a thread-local symbol with an impossible name");
        if (!strncmp(name, "_ZSt", 4)) /* std::, as call_once's: the C++ library defines it */
            continue;
        fprintf(out, "    .globl %s\n    .type %s, %%object\n%s:\n", name, name, name);
    }
    return 0;
}

static int stub_write(struct object *o, FILE *out, struct err *err)
{
    Elf64_Ehdr header;
    if (header_get(o, &header, err))
        return -1;
    fputs("    .section .tbss, \"awT\", %nobits\n    .balign 1024\n", out);
    fputs("    .globl simt_dynamic_shared\n    .type simt_dynamic_shared, %object\nsimt_dynamic_shared:\n", out);
    for (uint64_t i = 0; i < o->n_sections; i++) {
        const Elf64_Shdr section = section_get(o, &header, i);
        if (section.sh_type == SHT_SYMTAB && symbols_write(o, &header, &section, out, err))
            return -1;
    }
    fprintf(out, "    .zero %u\n    .section .note.GNU-stack, \"\", %%progbits\n", SIMT_SHARED_MAX);
    return 0;
}

/* Makes room behind every section of thread-local storage: each holds one variable (-fdata-sections). */
static int spread(struct object *o, struct err *err)
{
    Elf64_Ehdr header;
    if (header_get(o, &header, err))
        return -1;
    for (uint64_t i = 0; i < o->n_sections; i++) {
        Elf64_Shdr section = section_get(o, &header, i);
        if (section.sh_type != SHT_NOBITS || !(section.sh_flags & SHF_TLS) || !section.sh_size)
            continue;
        section.sh_size += LINK_STUB_ROOM_BYTES;
        memcpy(o->bytes + header.e_shoff + i * sizeof section, &section, sizeof section);
    }
    return 0;
}

int link_stub_spread(const char *object_path, struct err *err)
{
    struct object o = {0};
    int rc = object_read(&o, object_path, err) ? -1 : spread(&o, err);
    FILE *out = rc ? NULL : fopen(object_path, "wb");
    if (out) {
        const size_t written = fwrite(o.bytes, 1, o.n_bytes, out);
        if (fclose(out) || written != o.n_bytes)
            rc = err_errno(err, object_path, "cannot write the object file");
    } else if (!rc) {
        rc = err_errno(err, object_path, "cannot write the object file");
    }
    free(o.bytes);
    return rc;
}

/* The function is an instance of a template, as kernels that stand in files of their own are: of any other one that is
   missing the linker tells. A mangled name (Itanium C++ ABI, 5.1) is _Z, N and qualifiers where it is nested, its parts
   with their lengths, and I before the arguments of a template. */
static bool is_instance(const char *name)
{
    static const char *const library[] = {"_ZNSt", "_ZNKSt", "_ZSt", "_ZN9__gnu_cxx"};
    for (size_t i = 0; i < sizeof library / sizeof *library; i++)
        if (strncmp(name, library[i], strlen(library[i])) == 0)
            return false;
    if (strncmp(name, "_Z", 2) != 0 || !name_ok(name))
        return false;
    const char *at = name + 2 + (name[2] == 'N');
    at += strspn(at, "rVKRO");
    at += *at == 'L'; /* of an unnamed namespace, or static */
    while (*at >= '1' && *at <= '9') {
        char *behind;
        const unsigned long length = strtoul(at, &behind, 10);
        if (length >= strlen(behind))
            return false;
        at = behind + length;
        if (*at == 'I')
            return true;
    }
    return false;
}

static int function_write(const char *folder, int number, const char *name, struct err *err)
{
    char path[700];
    snprintf(path, sizeof path, "%s/missing%d.s", folder, number);
    FILE *out = fopen(path, "w");
    if (!out)
        return err_errno(err, path, "cannot write the link stub");
    fprintf(out, "    .text\n    .weak %s\n    .type %s, %%function\n%s:\n" MISSING_CODE "1:  .asciz \"%s\"\n", name,
            name, name, name);
    fputs("    .section .note.GNU-stack, \"\", %progbits\n", out);
    const int bad = ferror(out);
    return fclose(out) || bad ? err_errno(err, path, "cannot write the link stub") : 0;
}

/* What the section's relocations call and this object does not have, counted on from n; called: a mark for each symbol.
 */
static int missing_of(const struct object *o, const Elf64_Ehdr *header, const Elf64_Shdr *section,
                      unsigned char *called, uint64_t n_symbols, int n, const char *folder, struct err *err)
{
    const uint64_t count = section->sh_size / sizeof(Elf64_Rela);
    const unsigned char *relocations = object_at(o, section->sh_offset, count, sizeof(Elf64_Rela));
    if (section->sh_link >= o->n_sections || !relocations)
        return err_set(err, ERR_BUILD, o->path, "relocations past the end of the file");
    const Elf64_Shdr symtab = section_get(o, header, section->sh_link);
    const Elf64_Shdr strings = section_get(o, header, symtab.sh_link < o->n_sections ? symtab.sh_link : 0);
    const unsigned char *symbols = object_at(o, symtab.sh_offset, symtab.sh_size, 1);
    const char *names = (const char *)object_at(o, strings.sh_offset, strings.sh_size, 1);
    if (!symbols || !names || !strings.sh_size || names[strings.sh_size - 1])
        return err_set(err, ERR_BUILD, o->path, "a symbol table past the end of the file");
    for (uint64_t i = 0; i < count; i++) {
        Elf64_Rela relocation;
        Elf64_Sym symbol;
        memcpy(&relocation, relocations + i * sizeof relocation, sizeof relocation);
        const uint64_t at = ELF64_R_SYM(relocation.r_info);
        if (!IS_CALL(ELF64_R_TYPE(relocation.r_info)) || at >= n_symbols || at >= symtab.sh_size / sizeof symbol ||
            called[at])
            continue;
        called[at] = 1;
        memcpy(&symbol, symbols + at * sizeof symbol, sizeof symbol);
        const char *name = symbol.st_name < strings.sh_size ? names + symbol.st_name : "";
        if (symbol.st_shndx != SHN_UNDEF || ELF64_ST_BIND(symbol.st_info) == STB_WEAK || !is_instance(name))
            continue;
        if (function_write(folder, n, name, err))
            return -1;
        n++;
    }
    return n;
}

static int missing_write(struct object *o, const char *folder, struct err *err)
{
    Elf64_Ehdr header;
    uint64_t n_symbols = 0;
    if (header_get(o, &header, err))
        return -1;
    for (uint64_t i = 0; i < o->n_sections; i++) {
        const Elf64_Shdr section = section_get(o, &header, i);
        n_symbols = section.sh_type == SHT_SYMTAB ? section.sh_size / sizeof(Elf64_Sym) : n_symbols;
    }
    unsigned char *called = calloc(n_symbols + 1, 1);
    int all = called ? 0 : err_no_memory(err, o->path, "its symbols");
    for (uint64_t i = 0; i < o->n_sections && all >= 0; i++) {
        const Elf64_Shdr section = section_get(o, &header, i);
        if (section.sh_type == SHT_RELA)
            all = missing_of(o, &header, &section, called, n_symbols, all, folder, err);
    }
    free(called);
    return all;
}

static int list_write(const char *folder, const char *kind, int n, struct err *err)
{
    char path[700];
    snprintf(path, sizeof path, "%s/missing.%s.args", folder, kind);
    FILE *out = fopen(path, "w");
    if (!out)
        return err_errno(err, path, "cannot write the link stub");
    for (int i = 0; i < n; i++)
        fprintf(out, "missing%d.%s\n", i, kind);
    const int bad = ferror(out);
    return fclose(out) || bad ? err_errno(err, path, "cannot write the link stub") : 0;
}

int link_stub_write(const char *object_path, const char *out_asm_path, struct err *err)
{
    struct object o = {0};
    if (object_read(&o, object_path, err)) {
        free(o.bytes);
        return -1;
    }
    FILE *out = fopen(out_asm_path, "w");
    if (!out) {
        free(o.bytes);
        return err_errno(err, out_asm_path, "cannot write the link stub");
    }
    int rc = stub_write(&o, out, err);
    free(o.bytes);
    const int bad = ferror(out);
    if ((fclose(out) || bad) && rc >= 0)
        rc = err_errno(err, out_asm_path, "cannot write the link stub");
    if (rc < 0)
        remove(out_asm_path);
    return rc;
}

int link_stub_missing(const char *object_path, const char *folder, struct err *err)
{
    struct object o = {0};
    const int n = object_read(&o, object_path, err) ? -1 : missing_write(&o, folder, err);
    free(o.bytes);
    return n > 0 && (list_write(folder, "s", n, err) || list_write(folder, "o", n, err)) ? -1 : n;
}
