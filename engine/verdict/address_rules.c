#include "engine/verdict/addresses.h"

#include <stdio.h>

enum { TOLD_LEAST = 16 };

int64_t memory_length(const struct memory *m, int batch)
{
    return m->ch == asc_q ? asc_q_len(m->p, batch) : asc_kv_len(m->p, batch);
}

static int64_t pages_of(const struct memory *m, int batch)
{
    const int64_t rows = memory_length(m, batch), size = m->p->page_size;
    return rows > 0 ? (rows - 1) / size + 1 : 0;
}

int64_t memory_place(const struct memory *m, int batch, int64_t row)
{
    const int64_t size = m->p->page_size;
    return m->paged ? m->p->page_table[(int64_t)batch * m->table_pages + row / size] * size + row % size
                    : m->begin[batch] + row;
}

int64_t address_reads(const struct memory *m, const struct address *a, int batch, int64_t row)
{
    const struct asc_problem *p = m->p;
    const int64_t size = p->page_size > 0 ? p->page_size : 1, i = row / size,
                  entries = (int64_t)p->batch * m->table_pages;
    int64_t entry, page, at = -1;
    switch (a->rule) {
    case TABLE_OWN:
    case TABLE_PACKED:
        entry = a->rule == TABLE_OWN ? batch * pages_of(m, batch) + i : i;
        for (int b = 0; a->rule == TABLE_PACKED && b < batch; b++)
            entry += pages_of(m, b);
        at = entry >= entries ? -1 : p->page_table[entry] * size + row % size;
        break;
    case TABLE_AT:
        entry = a->by_batch * batch + a->by_page * i + a->plus;
        at = entry < 0 || entry >= entries ? -1 : p->page_table[entry] * size + row % size;
        break;
    case PAGE_NUMBER:
        page = a->by_batch * batch + a->by_page * i + a->plus;
        at = page < 0 || page >= p->pages ? -1 : page * size + row % size;
        break;
    case PAGE_ROWS:
    case ENTRY_ROWS:
        entry = (int64_t)batch * m->table_pages + row / a->rows;
        at = entry >= entries ? -1 : p->page_table[entry] * size + row % (a->rule == PAGE_ROWS ? a->rows : size);
        break;
    case PAGE_BITS:
        at = (p->page_table[(int64_t)batch * m->table_pages + i] & 0xff) * size + row % size;
        break;
    case ROW_MASKED:
    case ROW_BY_TILE:
    case ROW_MODULO:
        at = p->page_table[(int64_t)batch * m->table_pages + i] * size + (a->rule == ROW_MASKED ? row & (size - 1)
                                                                          : a->rule == ROW_BY_TILE
                                                                              ? row % m->t->plan.bc % size
                                                                              : row % a->rows);
        break;
    case PAGE_BY_TILE:
        at = p->page_table[(int64_t)batch * m->table_pages + row % m->t->plan.bc / size] * size + row % size;
        break;
    case PAGE_OF_TILE:
    case TILE_IN_PAGE:
        page = p->page_table[(int64_t)batch * m->table_pages + (row - row % m->t->plan.bc) / size];
        at = page * size +
             (a->rule == PAGE_OF_TILE ? row % size : (row - row % m->t->plan.bc) % size + row % m->t->plan.bc);
        break;
    case BEGIN_NEXT:
        at = m->begin[batch + 1] + row;
        break;
    case BEGIN_PREVIOUS:
        at = m->begin[batch > 0 ? batch - 1 : 0] + row;
        break;
    case BEGIN_OTHERS:
        for (int b = at = 0; b < batch; b++)
            at += m->ch == asc_q ? asc_kv_len(p, b) : asc_q_len(p, b);
        at += row;
        break;
    case BEGIN_STEPS:
        at = a->by_batch * batch + a->plus + row;
        break;
    case RULES:
        break;
    }
    return at < m->n ? at : -1;
}

/* What a sight is counted by: the entry of the table, the page, the begin of the sequence. */
static int64_t counted(const struct memory *m, enum reading rule, const struct sight *s)
{
    const int64_t size = m->p->page_size, owner = m->owner[s->at];
    return rule == TABLE_AT      ? owner / m->rows * m->table_pages + owner % m->rows / size
           : rule == PAGE_NUMBER ? s->at / size
                                 : s->at - s->row;
}

bool address_solve(const struct memory *m, const struct sight *sights, size_t n, struct address *a)
{
    const int64_t size = m->paged ? m->p->page_size : 1;
    const struct sight *first = NULL, *other_page = NULL, *other_batch = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct sight *s = &sights[i];
        if (s->at < 0)
            continue;
        first = first ? first : s;
        if (!other_page && s->batch == first->batch && s->row / size != first->row / size)
            other_page = s;
        if (!other_batch && s->batch != first->batch)
            other_batch = s;
    }
    if (!first || (m->paged && !other_page))
        return false;
    a->by_page = 0;
    if (m->paged) {
        const int64_t pages = other_page->row / size - first->row / size;
        const int64_t step = counted(m, a->rule, other_page) - counted(m, a->rule, first);
        if (step % pages)
            return false;
        a->by_page = step / pages;
    }
    a->plus = counted(m, a->rule, first) - a->by_page * (first->row / size);
    a->by_batch = a->rule == TABLE_AT ? m->table_pages : 0;
    if (other_batch) {
        const int64_t there = counted(m, a->rule, other_batch) - a->by_page * (other_batch->row / size);
        const int64_t batches = other_batch->batch - first->batch;
        if ((there - a->plus) % batches)
            return false;
        a->by_batch = (there - a->plus) / batches;
    }
    a->plus -= a->by_batch * first->batch;
    return true;
}

bool address_fits(const struct memory *m, const struct address *a, const struct sight *sights, size_t n)
{
    size_t told = 0;
    for (size_t i = 0; i < n; i++) {
        const int64_t at = address_reads(m, a, sights[i].batch, sights[i].row);
        const bool nobodys = at < 0 || m->owner[at] < 0;
        if (sights[i].at >= 0 ? at != sights[i].at : !nobodys)
            return false;
        told += at >= 0 && at != memory_place(m, sights[i].batch, sights[i].row);
    }
    return told >= TOLD_LEAST;
}

/* "3 batch + i + 1" */
static void say_sum(const struct address *a, char out[64])
{
    char batch[24] = "", page[24] = "", plus[24] = "";
    if (a->by_batch == 1)
        snprintf(batch, sizeof batch, "batch");
    else if (a->by_batch)
        snprintf(batch, sizeof batch, "%lld batch", (long long)a->by_batch);
    if (a->by_page == 1)
        snprintf(page, sizeof page, "%si", *batch ? " + " : "");
    else if (a->by_page)
        snprintf(page, sizeof page, "%s%lld i", *batch ? " + " : "", (long long)a->by_page);
    if (a->plus || (!*batch && !*page))
        snprintf(plus, sizeof plus, "%s%lld",
                 !*batch && !*page ? ""
                 : a->plus < 0     ? " - "
                                   : " + ",
                 (long long)(a->plus < 0 && (*batch || *page) ? -a->plus : a->plus));
    snprintf(out, 64, "%s%s%s", batch, page, plus);
}

void address_say(const struct memory *m, const struct address *a, char out[ADDRESS_BYTES])
{
    const int size = m->p->page_size;
    const char other = m->ch == asc_q ? 'k' : 'q', own = m->ch == asc_q ? 'q' : 'k';
    const long long plus = (long long)a->plus, pitch = m->table_pages;
    char sum[64];
    int other_pages = 1; /* a sequence that has not as many pages as a row of the table */
    say_sum(a, sum);
    switch (a->rule) {
    case TABLE_OWN:
        while (other_pages + 1 < m->p->batch && pages_of(m, other_pages) == pitch)
            other_pages++;
        snprintf(out, ADDRESS_BYTES,
                 "the page table is read at entry batch * n + i, n being the pages of the sequence itself (%lld of "
                 "sequence %d); a row of the table has %lld entries",
                 (long long)pages_of(m, other_pages), other_pages, pitch);
        break;
    case TABLE_PACKED:
        snprintf(
            out, ADDRESS_BYTES,
            "the page table is read as if a sequence's entries began right behind those of the one before; a row of "
            "the table has %lld entries",
            pitch);
        break;
    case TABLE_AT:
        if (a->by_page == 1 && a->by_batch == pitch)
            snprintf(out, ADDRESS_BYTES, "the page table is read at [batch][i %c %lld] for page i, key / %d",
                     plus < 0 ? '-' : '+', plus < 0 ? -plus : plus, size);
        else if (a->by_page == 1 && a->by_batch == 0 && plus % pitch == 0)
            snprintf(out, ADDRESS_BYTES, "the page table is read at [%lld][i], whatever the sequence", plus / pitch);
        else if (a->by_batch == 1 && a->by_page == m->p->batch && plus == 0)
            snprintf(out, ADDRESS_BYTES, "the page table is read as [page][batch]; it is [batch][page]");
        else
            snprintf(out, ADDRESS_BYTES, "the page table is read at entry %s; its rows have %lld entries", sum, pitch);
        break;
    case PAGE_NUMBER:
        snprintf(out, ADDRESS_BYTES, "page %s is read for page i of a sequence, whatever the page table says", sum);
        break;
    case PAGE_ROWS:
        snprintf(out, ADDRESS_BYTES,
                 "the page table is read at [batch][key / %d], with row key %% %d; a page has %d rows", a->rows,
                 a->rows, size);
        break;
    case ENTRY_ROWS:
        snprintf(
            out, ADDRESS_BYTES,
            "the page table is read at [batch][key / %d], in the place of key / %d; the row within the page is right",
            a->rows, size);
        break;
    case PAGE_BITS:
        snprintf(out, ADDRESS_BYTES, "the page's number is cut to 8 bits: page n %% 256 is read for page n");
        break;
    case ROW_MASKED:
        snprintf(out, ADDRESS_BYTES, "row key & %d of its page is read, in the place of key %% %d", size - 1, size);
        break;
    case ROW_BY_TILE:
        snprintf(out, ADDRESS_BYTES,
                 "of the right page row r %% %d is read, r being the row in the kv tile, in the place of key %% %d",
                 size, size);
        break;
    case PAGE_BY_TILE:
        snprintf(out, ADDRESS_BYTES,
                 "the page table is read at [batch][r / %d], r being the row in the kv tile, in the place of the key",
                 size);
        break;
    case PAGE_OF_TILE:
        snprintf(out, ADDRESS_BYTES,
                 "all rows of a kv tile are read from the page of its first key, each at row key %% %d of it", size);
        break;
    case TILE_IN_PAGE:
        snprintf(out, ADDRESS_BYTES,
                 "the rows of a kv tile are read one behind the other in memory from its first key on, past the end of "
                 "its page");
        break;
    case ROW_MODULO:
        snprintf(out, ADDRESS_BYTES, "row key %% %d of its page is read, in the place of key %% %d", a->rows, size);
        break;
    case BEGIN_NEXT:
        snprintf(out, ADDRESS_BYTES, "a sequence is read from cu_seqlens_%c[batch + 1] on, where the next one begins",
                 own);
        break;
    case BEGIN_PREVIOUS:
        snprintf(out, ADDRESS_BYTES, "a sequence is read from cu_seqlens_%c[batch - 1] on, where the one before begins",
                 own);
        break;
    case BEGIN_OTHERS:
        snprintf(out, ADDRESS_BYTES, "a sequence is read from cu_seqlens_%c[batch] on, where that of the %s begins",
                 other, other == 'q' ? "queries" : "keys");
        break;
    case BEGIN_STEPS:
        if (plus == 0 && a->by_batch == m->rows)
            snprintf(out, ADDRESS_BYTES,
                     "a sequence is read from row batch * %d on, as if all had the length of the longest", m->rows);
        else
            snprintf(out, ADDRESS_BYTES, "a sequence is read from row %s on", sum);
        break;
    case RULES:
        break;
    }
}
