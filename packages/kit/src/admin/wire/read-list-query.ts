import type { AdminListQuery, AdminResource } from '../../app/admin/declaration.ts';
import type { AdminFilter } from '../../app/admin/shapes.ts';
import { isCalendarDate } from '../../db/declare/column-codec.ts';
import { CURSOR_LENGTH_MAX, type Cursors } from '../../db/sql/keyset/cursor.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import type { FieldError } from '../../errors/kit-error.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import { adminFilterNames } from '../../app/admin/filter-names.ts';

const LIMIT = 50;
const LIMIT_MAX = 100;
const FILTER = 'filter.';

export type ListParameters = Readonly<Record<string, string | readonly string[] | number>>;

/** Filters are `filter.<name>`: their names depend on the list, so they are checked by {@link readListQuery}. */
export const ListParametersSchema = jsonSchema<ListParameters>({
  type: 'object',
  properties: {
    search: { type: 'string', maxLength: 200 },
    cursor: { type: 'string', maxLength: CURSOR_LENGTH_MAX },
    limit: { type: 'integer', minimum: 1, maximum: LIMIT_MAX },
    sort: { type: 'string', maxLength: 100 },
  },
  additionalProperties: { type: 'string', maxLength: 500 },
});

interface ListCaller {
  readonly cursors: Cursors;
  readonly userId: string;
}

/** The query in the words of the declaration; unknown names and values are a 422 that says what exists. */
export function readListQuery(resource: AdminResource, given: ListParameters, { cursors, userId }: ListCaller): AdminListQuery {
  const { search, cursor, limit, sort, ...rest } = given as { search?: string; cursor?: string; limit?: number; sort?: string };
  const faults: FieldError[] = [];
  const filters: Record<string, string> = {};
  for (const [name, value] of Object.entries<string>(rest)) {
    const called = name.startsWith(FILTER) ? name.slice(FILTER.length) : '';
    const filter = resource.filters.find((each) => adminFilterNames(each).has(called));
    const fault = filter === undefined ? unknownFilter(resource) : filterFault(filter, adminFilterNames(filter).get(called), value);
    if (fault !== null)
      faults.push({ location: ['query', name], code: filter === undefined ? 'unknown_field' : 'invalid', message: fault });
    else if (value !== '') filters[called] = value;
  }
  if (search !== undefined && search.trim() !== '' && resource.searches === undefined)
    faults.push({ location: ['query', 'search'], code: 'unknown_field', message: 'This list has no search.' });
  const order = sort === undefined || sort === '' ? null : { column: sort.replace(/^-/, ''), descending: sort.startsWith('-') };
  const sortable = resource.columns.filter((column) => column.sortable === true).map((column) => column.name);
  if (order !== null && !sortable.includes(order.column))
    faults.push({ location: ['query', 'sort'], code: 'invalid', message: `The list can be sorted by ${names(sortable)}.` });
  if (faults.length > 0) throw coreErrors.validation_error({ errors: faults });
  const text = search === undefined || search.trim() === '' ? null : search.trim();
  const sortedFilters = Object.entries(filters).sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    search: text,
    filters,
    cursors,
    bound: JSON.stringify(['admin', resource.name, userId, text, sortedFilters]),
    sort: order,
    limit: limit ?? LIMIT,
    cursor: cursor === undefined || cursor === '' ? null : cursor,
  };
}

/** A view that somebody saves: what the list understands, and which of its columns are shown. */
export function checkView(resource: AdminResource, query: string, caller: ListCaller): void {
  const { columns = '', ...rest } = Object.fromEntries(new URLSearchParams(query));
  readListQuery(resource, rest, caller);
  const known = resource.columns.map(({ name }) => name);
  if (columns === '' || columns.split(',').every((name) => known.includes(name))) return;
  const message = `The columns of this list are ${names(known)}.`;
  throw coreErrors.validation_error({ errors: [{ location: ['query', 'columns'], code: 'invalid', message }] });
}

function unknownFilter({ filters }: AdminResource): string {
  return `The filters of this list are ${names(filters.flatMap((filter) => [...adminFilterNames(filter).keys()].map((name) => `${FILTER}${name}`)))}.`;
}

function filterFault({ kind, choices = [] }: AdminFilter, operator: string | undefined, value: string): string | null {
  if (value === '') return null;
  if (operator === 'empty') return value === 'yes' || value === 'no' ? null : 'Give yes or no.';
  if (kind === 'select') {
    const wanted = operator === 'in' ? value.split(',') : [value];
    const isKnown = wanted.every((each) => choices.some((choice) => choice.value === each));
    return isKnown ? null : `Choose one of ${names(choices.map((choice) => choice.value))}.`;
  }
  if (kind === 'time' && !isMoment(value)) return 'Give a time as in 2026-01-31T12:00:00Z.';
  if (kind === 'date' && !isCalendarDate(value)) return 'Give a date as in 2026-01-31.';
  if (kind === 'number' && !/^-?\d{1,30}(?:\.\d{1,30})?$/.test(value)) return 'Give a number as in 12.5.';
  return null;
}

/** ISO 8601 with a zone: anything less means another moment on another machine. */
export function isMoment(text: string): boolean {
  return /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2})$/.test(text) && !Number.isNaN(Date.parse(text));
}

function names(list: readonly string[]): string {
  return list.length === 0 ? 'none' : list.join(', ');
}
