import { ruleResult } from '../../auth/rights/rule-result.ts';
import type { Db } from '../../db/engine/db.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import type { FieldError } from '../../errors/kit-error.ts';
import type { Item } from '../declare/item.ts';
import type { TransitionRule } from '../declare/action-rule.ts';
import { callerOf, type CrudRequest, type Scope } from '../policy/crud-request.ts';
import type { Policy } from '../policy/policy.ts';
import { isSame } from './change.ts';
import type { Asked, RowIntent } from './intent.ts';
import { RowStatements } from './row-statements.ts';
import { unwritableColumns } from '../policy/unwritable-columns.ts';

// What each step of a write refuses. The steps themselves are in pipeline.ts, in their order.

export function notFound({ missing }: Policy): never {
  throw missing();
}

/** 404: of the only row of a request, or of the rows at their places. */
export function refuseMissing(policy: Policy, rows: readonly RowIntent[]): never {
  const places = rows.flatMap(({ at }) => (at === undefined ? [] : [at]));
  throw missingAt(policy, places);
}

/** The 404 of a request; of several rows, with their places in it. */
export function missingAt({ missing }: Policy, places: readonly FieldError['location'][]): Error {
  if (places.length === 0) return missing();
  return missing({ errors: places.map((location) => ({ location, code: missing.code, message: 'There is no such row.' })) });
}

/** 412 for rows that have another version than the request names. */
export function refuseStale(policy: Policy, rows: readonly { readonly intent: RowIntent; readonly row: Item }[], asked: Asked): void {
  const version = policy.options.version as string | undefined;
  const isStale = ({ ifMatch }: RowIntent, row: Item): boolean =>
    ifMatch !== undefined && !ifMatch.any && (version === undefined || !ifMatch.versions.includes(String(row[version])));
  const stale = rows.filter(({ intent, row }) => isStale(intent, row));
  const [first] = stale;
  if (first === undefined) return;
  if (first.intent.at === undefined) throw staleRow(policy, first.row, asked);
  throw coreErrors.precondition_failed({
    errors: stale.map(({ intent, row }) => ({
      location: [...(intent.at ?? ['body']), version ?? ''],
      code: 'precondition_failed',
      message: `The row has version ${String(row[version ?? ''])} now.`,
    })),
  });
}

export function staleRow(policy: Policy, row: Item, { etagOf }: Asked): Error {
  if (policy.options.version === undefined)
    return coreErrors.precondition_failed({
      detail: 'This resource has no version. Omit `If-Match`, or send `*`.',
    });
  const etag = etagOf?.(row);
  return coreErrors.precondition_failed(etag === undefined ? {} : { extensions: { etag }, headers: { etag } });
}

/** A transition that the row cannot make. It is undone before the other transitions are looked at. */
export class NotPossible extends Error {
  readonly row: Item;

  constructor(row: Item, detail: string) {
    super(detail);
    this.row = row;
  }
}

export function notPossible(policy: Policy, name: string, row: Item, detail?: string): NotPossible {
  return new NotPossible(row, detail ?? `"${name}" is not possible from "${String(row[policy.options.state as string])}".`);
}

/** 409 where the state or the guard does not let the row make the transition. */
export function refuseTransition(policy: Policy, request: CrudRequest, name: string, { from, guard }: TransitionRule, row: Item): void {
  if (!from.includes(row[policy.options.state as string])) throw notPossible(policy, name, row);
  const allowed = guard === undefined || guardResult(policy, name, guard(row, callerOf(request)));
  if (allowed !== true) throw notPossible(policy, name, row, typeof allowed === 'string' ? allowed : undefined);
}

/** What the guard of a transition says of a row. */
export function guardResult(policy: Policy, transition: string, result: unknown): boolean | string {
  return ruleResult('guard', `transition "${transition}" of resource(${policy.model.name})`, result);
}

/** True when the caller may write all it sent, whatever the row is. What it may not is refused after 404 and 412. */
export async function isWritableByRequest(policy: Policy, request: CrudRequest, sent: readonly string[]): Promise<boolean> {
  return (await unwritableColumns(policy, request.context, sent)).size === 0;
}

/** 403 with the names of what the caller sent and may not write. Rules about the row look at `row`; unknown counts as no. */
export async function refuseUnwritable(policy: Policy, request: CrudRequest, sent: readonly string[], row: Item): Promise<void> {
  const fields = [...(await unwritableColumns(policy, request.context, sent, row)).keys()];
  if (fields.length > 0) throw coreErrors.permission_denied({ detail: `You may not write ${fields.join(', ')}.`, extensions: { fields } });
}

/** A value of a client that names a row of another table. */
interface Reference {
  readonly location: FieldError['location'];
  readonly value: unknown;
}

/** References to one table: its rows are asked for in one statement, however many values there are. */
export interface ReferenceCheck {
  readonly target: Policy;
  readonly scope: Scope;
  readonly references: Reference[];
}

/** A row of a request, with the row as it was where there is one. */
export interface SentRow {
  readonly values: Item;
  readonly at: FieldError['location'];
  readonly before?: Item | null;
}

/** The references among the values of some rows that lead to rows only some callers see. One that does not change is not asked again. */
export async function referencesOf(policy: Policy, request: CrudRequest, rows: readonly SentRow[]): Promise<ReferenceCheck[]> {
  const checks = new Map<Policy, ReferenceCheck>();
  for (const { values, at, before } of rows) {
    for (const [name, target] of policy.references) {
      const value = values[name];
      if (value === null || value === undefined) continue;
      if (before !== null && before !== undefined && isSame(policy.statements.column(name), before[name], value)) continue;
      const scope = await target.rows.ofEdge(request);
      // Every row is visible: the database's own check of the reference is enough, where it has one.
      const isConstrained = policy.statements.column(name).settings.reference?.isConstrained !== false;
      if (scope.compiled.constant === true && isConstrained) continue;
      const check = checks.get(target) ?? { target, scope, references: [] };
      checks.set(target, check);
      check.references.push({ location: [...at, name], value });
    }
  }
  return [...checks.values()];
}

/** 422 for every value that names no row the caller sees. One statement per table. */
export async function checkReferences(tx: Db, checks: readonly ReferenceCheck[]): Promise<void> {
  const errors: FieldError[] = [];
  for (const check of checks) errors.push(...(await unknownReferences(tx, check)));
  if (errors.length > 0) throw coreErrors.validation_error({ errors });
}

async function unknownReferences(tx: Db, { target, scope, references }: ReferenceCheck): Promise<FieldError[]> {
  const stored = (value: unknown) => String(target.key.encode(value));
  const values = [...new Map(references.map(({ value }) => [stored(value), value])).values()];
  const found = await new RowStatements(target).visibleKeys(tx, scope, values);
  return references
    .filter(({ value }) => !found.has(stored(value)))
    .map(({ location }) => ({ location, code: 'unknown_reference', message: 'There is no such row, or you may not refer to it.' }));
}
