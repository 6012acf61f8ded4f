import { canonicalJson } from '../../db/values/canonical-json.ts';
import { maskedByPlace } from '../../auth/request/audit-sink.ts';
import { MASK } from '../../middleware/masking.ts';
import { sensitiveSchemaOf, toJson } from '../../db/declare/column-json.ts';
import { withoutSensitive } from '../../db/declare/sensitive-members.ts';
import type { ModelColumn } from '../../db/sql/model-statements.ts';
import { viewOfEveryone } from '../policy/make-view.ts';
import type { Policy } from '../policy/policy.ts';
import type { Item } from '../declare/item.ts';

/** Columns whose value differs. Those that every write moves (timestamps, version, user stamps) do not count. */
export function changedColumns({ statements }: Policy, before: Item, after: Item): string[] {
  return statements.columns
    .filter((column) => !isBookkeeping(column) && !isSame(column, before[column.name], after[column.name]))
    .map(({ name }) => name);
}

function isBookkeeping({ settings }: ModelColumn): boolean {
  return settings.touch !== undefined || settings.increment === true || settings.stamp !== undefined;
}

/** Whether a column has the same value twice. */
export function isSame({ settings: { kind, encrypted } }: ModelColumn, before: unknown, after: unknown): boolean {
  // A write keeps the ciphertext of a value that stays the same.
  if (before === after || encrypted !== undefined) return before === after;
  if (before === null || after === null || before === undefined || after === undefined) return false;
  if (kind === 'timestamp') return (before as Date).getTime() === (after as Date).getTime();
  if (kind === 'bytes') return Buffer.compare(before as Uint8Array, after as Uint8Array) === 0;
  if (kind === 'json' || kind === 'array') return canonicalJson(before) === canonicalJson(after);
  return false;
}

/** The stored columns as JSON, for audit entries: sensitive ones masked. */
export function auditedRow({ statements }: Policy, row: Item | null): Record<string, unknown> | null {
  if (row === null) return null;
  const audited: Record<string, unknown> = {};
  for (const { name, settings } of statements.columns)
    audited[name] = settings.sensitive && row[name] !== null ? MASK : shownJson(settings, row[name], MASK);
  return maskedByPlace(audited);
}

/** A value as JSON; sensitive members inside it are masked, or left out. */
function shownJson(settings: ModelColumn['settings'], value: unknown, mask?: string): unknown {
  const sensitive = sensitiveSchemaOf(settings);
  return sensitive === undefined ? toJson(settings, value) : withoutSensitive(sensitive, value ?? null, mask);
}

/** The columns that are under no rule and not hidden, as JSON: what an event may show to its receiver. */
export function announcedRow(policy: Policy, row: Item): Record<string, unknown> {
  const announced: Record<string, unknown> = {};
  for (const { name, settings, shown } of viewOfEveryone(policy).shownColumns())
    if (shown === 'always') announced[name] = shownJson(settings, row[name]);
  return announced;
}
