import { adminFilterNames, type AdminFilter, type AdminFilterOperator } from '../api/shapes.ts';
import { formatDate, formatNumber, formatTime } from '../values/format.ts';

export type Filters = Readonly<Record<string, string>>;

/** A filter that is set: what its chip says, and the names it travels under. */
export interface Term {
  readonly filter: AdminFilter;
  readonly operator: AdminFilterOperator | 'range';
  readonly names: readonly string[];
  /** `is`, `is not`, `between`; empty where the value says everything. */
  readonly verb: string;
  readonly value: string;
}

export const VERBS: Readonly<Record<AdminFilterOperator, string>> = {
  is: 'is',
  not: 'is not',
  in: 'is one of',
  contains: 'contains',
  empty: 'is empty',
};

/** The filters that are set, in the order of the list. */
export function termsOf(filters: readonly AdminFilter[], set: Filters): readonly Term[] {
  return filters.flatMap((filter): Term[] => {
    const terms: Term[] = [];
    const [from, to] = (filter.ends ?? []).map((name) => set[name]);
    if (filter.ends !== undefined && (from !== undefined || to !== undefined)) {
      terms.push({ filter, operator: 'range', names: filter.ends, ...rangeWords(filter, from, to) });
    }
    for (const [name, operator] of adminFilterNames(filter)) {
      const value = set[name];
      if (value === undefined || operator === 'from' || operator === 'to') continue;
      if (operator === 'empty')
        terms.push({ filter, operator, names: [name], verb: value === 'yes' ? 'is empty' : 'is not empty', value: '' });
      else
        terms.push({ filter, operator, names: [name], verb: filter.kind === 'time' ? '' : VERBS[operator], value: shown(filter, value) });
    }
    return terms;
  });
}

function shown({ kind, choices = [] }: AdminFilter, value: string): string {
  if (kind === 'time') return formatTime(value);
  if (kind !== 'select') return value;
  return value
    .split(',')
    .map((each) => choices.find((choice) => choice.value === each)?.label ?? each)
    .join(', ');
}

function rangeWords(filter: AdminFilter, from: string | undefined, to: string | undefined): Pick<Term, 'verb' | 'value'> {
  const first = from === undefined ? null : bound(filter, from, false);
  const last = to === undefined ? null : bound(filter, to, true);
  if (last === null) return { verb: 'from', value: first ?? '' };
  if (first === null) return { verb: 'to', value: last };
  return first === last ? { verb: filter.kind === 'number' ? 'is' : 'on', value: first } : { verb: 'from', value: `${first} to ${last}` };
}

function bound({ kind }: AdminFilter, value: string, isEnd: boolean): string {
  if (kind === 'number') return Number.isSafeInteger(Number(value)) ? formatNumber(Number(value)) : value;
  if (kind === 'date') return formatDate(value);
  return isMidnight(value) ? formatDate(dayOf(value, isEnd)) : formatTime(value);
}

function isMidnight(iso: string): boolean {
  const at = new Date(iso);
  return at.getHours() === 0 && at.getMinutes() === 0 && at.getSeconds() === 0 && at.getMilliseconds() === 0;
}

/** The local day of a bound, as a date field has it. A range ends before its end: at midnight, the day before is the last. */
export function dayOf(iso: string, isEnd: boolean): string {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return '';
  if (isEnd && isMidnight(iso)) at.setDate(at.getDate() - 1);
  return localDay(at);
}

export function localDay(at: Date): string {
  const two = (number: number): string => String(number).padStart(2, '0');
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

/** The beginning of a local day, or the end of it. */
export function momentOf(day: string, isEnd: boolean): string {
  const at = new Date(`${day}T00:00:00`);
  if (Number.isNaN(at.getTime())) return '';
  if (isEnd) at.setDate(at.getDate() + 1);
  return at.toISOString();
}

/** Ranges that people ask for most, as days; today is part of each but yesterday. */
export function presets(now: Date): readonly { readonly label: string; readonly from: string; readonly to: string }[] {
  const day = (back: number): string => localDay(new Date(now.getFullYear(), now.getMonth(), now.getDate() - back));
  return [
    { label: 'Today', from: day(0), to: day(0) },
    { label: 'Yesterday', from: day(1), to: day(1) },
    { label: 'Last 7 days', from: day(6), to: day(0) },
    { label: 'Last 30 days', from: day(29), to: day(0) },
    { label: 'This month', from: localDay(new Date(now.getFullYear(), now.getMonth(), 1)), to: day(0) },
  ];
}

/** The filters without those of a term. */
export function without(set: Filters, names: readonly string[]): Filters {
  return Object.fromEntries(Object.entries(set).filter(([name]) => !names.includes(name)));
}
