/* `--junit FILE`: JUnit XML as CI systems read it; one test case for each scenario, case of a kernel, or point. */
#include "cli/report.h"

#include "engine/base/path.h"
#include "engine/base/replace.h"
#include "engine/base/utf8.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int junit_check(const char *path, struct err *err)
{
    struct stat status;
    char folder[PATH_MAX];
    const size_t n = (size_t)path_folder(path);
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
        return err_set(err, ERR_INPUT, path, "is not a regular file; the report would replace it");
    errno = ENAMETOOLONG;
    if (n >= sizeof folder)
        return err_errno(err, path, "cannot be written");
    memcpy(folder, path, n);
    folder[n] = '\0';
    return access(n ? folder : ".", W_OK | X_OK) == 0 ? 0 : err_errno(err, path, "cannot be written");
}

/* XML 1.0, section 2.2: Char. utf8_decode() has already refused surrogates and what lies beyond U+10FFFF. */
static bool is_character(uint32_t code)
{
    return code >= 0x20 ? code != 0xFFFE && code != 0xFFFF : code == '\t' || code == '\n' || code == '\r';
}

/* What stands for a character that means something to XML, or NULL. A carriage return would be read as a line feed
   (section 2.11), a line break or tab in an attribute as a blank (section 3.3.3). */
static const char *reference(uint32_t code, bool in_attribute)
{
    switch (code) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\r':
        return "&#13;";
    case '\n':
        return in_attribute ? "&#10;" : NULL;
    case '\t':
        return in_attribute ? "&#9;" : NULL;
    default:
        return NULL;
    }
}

/* Bytes that are no UTF-8, and characters that XML has no place for, become U+FFFD. */
static void write_text(FILE *out, const char *text, bool in_attribute)
{
    uint32_t code;
    for (size_t n; (n = utf8_decode(text, &code)) > 0; text += n) {
        char bytes[8];
        const char *name = reference(code, in_attribute);
        if (!name)
            bytes[utf8_write(is_character(code) ? code : UTF8_REPLACEMENT, bytes)] = '\0';
        fputs(name ? name : bytes, out);
    }
}

static void write_attribute(FILE *out, const char *name, const char *value)
{
    fprintf(out, " %s=\"", name);
    write_text(out, value, true);
    fputs("\"", out);
}

static void write_property(FILE *out, const char *name, const char *value)
{
    if (!value[0])
        return;
    fputs("        <property", out);
    write_attribute(out, "name", name);
    write_attribute(out, "value", value);
    fputs("/>\n", out);
}

static void write_case(FILE *out, const struct check_result *r)
{
    fputs("    <testcase", out);
    write_attribute(out, "classname", r->kernel ? r->kernel : "attnscope.check");
    write_attribute(out, "name", r->path);
    fprintf(out, " time=\"%.3f\">\n", r->seconds);
    if (!r->kernel) {
        fputs("      <properties>\n", out);
        write_property(out, "verdict", r->verdict);
        write_property(out, "expected", r->expected);
        write_property(out, "found", r->found);
        fputs("      </properties>\n", out);
    }
    if (r->skipped) {
        fputs("      <skipped", out);
        write_attribute(out, "message", r->skipped);
        fputs("/>\n", out);
    }
    if (r->status) {
        const char *element = r->status == 1 ? "failure" : "error";
        fprintf(out, "      <%s", element);
        write_attribute(out, "type", r->status == 1 ? "not-as-expected" : err_name(r->err.code));
        write_attribute(out, "message", r->status == 1 ? r->why : r->err.message);
        fputs(">", out);
        if (r->status != 1 && r->err.where[0]) {
            write_text(out, r->err.where, false);
            fputs(": ", out);
            write_text(out, r->err.message, false);
            fputs("\n", out);
        }
        write_text(out, r->details ? r->details : "", false);
        fprintf(out, "</%s>\n", element);
    }
    fputs("    </testcase>\n", out);
}

static void write_counts(FILE *out, const char *suite, const struct check_result *results, size_t n)
{
    int failures = 0;
    int errors = 0;
    int skipped = 0;
    double seconds = 0;
    for (size_t i = 0; i < n; i++) {
        failures += results[i].status == 1;
        errors += results[i].status > 1;
        skipped += results[i].skipped != NULL;
        seconds += results[i].seconds;
    }
    fprintf(out, " name=\"attnscope %s\" tests=\"%zu\" failures=\"%d\" errors=\"%d\" skipped=\"%d\" time=\"%.3f\">\n",
            suite, n, failures, errors, skipped, seconds);
}

static void write_document(FILE *out, const char *suite, const struct check_result *results, size_t n)
{
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites", out);
    write_counts(out, suite, results, n);
    fputs("  <testsuite", out);
    write_counts(out, suite, results, n);
    fprintf(out, "    <properties>\n      <property name=\"oracle_version\" value=\"%d\"/>\n    </properties>\n",
            ORACLE_VERSION);
    for (size_t i = 0; i < n; i++)
        write_case(out, &results[i]);
    fputs("  </testsuite>\n</testsuites>\n", out);
}

int junit_write(const char *path, const char *suite, const struct check_result *results, size_t n, struct err *err)
{
    struct replacement r;
    if (replace_open(&r, path, 0666, err) != 0)
        return -1;
    write_document(r.file, suite, results, n);
    return replace_commit(&r, err);
}
