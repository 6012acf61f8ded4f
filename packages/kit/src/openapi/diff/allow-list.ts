import { isMembers } from '../../options/value-rule.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import type { DocumentChange } from './document-change.ts';
import { diffRules } from './rules.ts';

/** A change that was agreed on. It is allowed until a day, so that a list does not grow into a hole. */
export interface AllowedChange {
  readonly id: string;
  /** `GET /v1/orders`, as the report has it; `*` allows the change in all operations. */
  readonly operation: string;
  /** Default: all places of the operation. */
  readonly place?: string | undefined;
  /** The last day, `2026-12-31` (UTC). */
  readonly until: string;
  readonly reason: string;
}

export interface AllowedChanges {
  /** Changes that no valid entry allows. */
  readonly remaining: readonly DocumentChange[];
  readonly allowed: readonly { readonly change: DocumentChange; readonly entry: AllowedChange }[];
  readonly expired: readonly AllowedChange[];
  /** Entries that match no change: the base already has it, or there is a typing error. */
  readonly unused: readonly AllowedChange[];
}

const NAMES = ['id', 'operation', 'place', 'until', 'reason'];
const DAY = /^\d{4}-\d{2}-\d{2}$/;

/** The entries, or every fault of the list as one sentence each. */
export function readAllowList(value: unknown): { readonly entries: readonly AllowedChange[]; readonly faults: readonly string[] } {
  if (!Array.isArray(value)) return { entries: [], faults: ['The list is a JSON array of { id, operation, place?, until, reason }.'] };
  const faults = value.flatMap((entry: unknown, index) => faultsOf(entry).map((fault) => `Entry ${index + 1}: ${fault}`));
  return { entries: faults.length === 0 ? (value as AllowedChange[]) : [], faults };
}

function faultsOf(entry: unknown): string[] {
  if (!isMembers(entry)) return ['it is not an object.'];
  const faults: string[] = [];
  for (const name of Object.keys(entry)) if (!NAMES.includes(name)) faults.push(`there is no member "${name}".${didYouMean(name, NAMES)}`);
  for (const name of ['id', 'operation', 'until', 'reason'])
    if (typeof entry[name] !== 'string' || entry[name] === '') faults.push(`"${name}" is missing, or is not a non-empty string.`);
  if (entry['place'] !== undefined && typeof entry['place'] !== 'string') faults.push('"place" is not a string.');
  const { id, until } = entry;
  if (typeof id === 'string' && !(id in diffRules)) faults.push(`there is no rule "${id}".${didYouMean(id, Object.keys(diffRules))}`);
  if (typeof until === 'string' && until !== '' && !isDay(until)) faults.push(`"until" is a day such as "2026-12-31", not "${until}".`);
  return faults;
}

function isDay(text: string): boolean {
  const date = DAY.test(text) ? new Date(`${text}T00:00:00Z`) : undefined;
  return date !== undefined && !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text);
}

export function allowChanges(changes: readonly DocumentChange[], entries: readonly AllowedChange[], now: Date): AllowedChanges {
  const today = now.toISOString().slice(0, 10);
  const expired = entries.filter(({ until }) => until < today);
  const valid = entries.filter(({ until }) => until >= today);
  const matches = (entry: AllowedChange, change: DocumentChange) =>
    entry.id === change.id &&
    (entry.operation === '*' || entry.operation === change.operation) &&
    (entry.place === undefined || entry.place === change.place);
  const allowed: { change: DocumentChange; entry: AllowedChange }[] = [];
  const remaining: DocumentChange[] = [];
  for (const change of changes) {
    const entry = valid.find((each) => matches(each, change));
    if (entry === undefined) remaining.push(change);
    else allowed.push({ change, entry });
  }
  const used = new Set(allowed.map(({ entry }) => entry));
  return { remaining, allowed, expired, unused: valid.filter((entry) => !used.has(entry)) };
}
