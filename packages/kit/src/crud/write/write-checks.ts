import type { Db } from '../../db/db.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import type { FieldError } from '../../errors/kit-error.ts';
import type { CrudRequest, Scope } from '../policy/crud-request.ts';
import type { FieldRule } from '../declare/field-rule.ts';
import type { Policy } from '../policy/policy.ts';
import { RowStatements } from './row-statements.ts';
import type { Item } from '../read/select-unit.ts';

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

function ruleOf({ options }: Policy, name: string): FieldRule | undefined {
  return options.fields?.[name];
}

/** Whether the caller may write all it sent, whatever the row is. What it may not is refused after 404 and 412. */
export async function isWritableByRequest(policy: Policy, request: CrudRequest, sent: readonly string[]): Promise<boolean> {
  if (policy.options.fields === undefined) return true;
  for (const name of sent) {
    const permission = ruleOf(policy, name)?.writableBy;
    if (permission !== undefined && (await permission.evaluate(request.context)) !== true) return false;
  }
  return true;
}

/** 403 with the names of what the caller sent and may not write. Rules about the row look at `row`; unknown counts as no. */
export async function refuseUnwritable(policy: Policy, request: CrudRequest, sent: readonly string[], row: Item): Promise<void> {
  if (policy.options.fields === undefined) return;
  const fields: string[] = [];
  for (const name of sent) {
    const permission = ruleOf(policy, name)?.writableBy;
    if (permission !== undefined && (await permission.evaluate(request.context, row)) !== true) fields.push(name);
  }
  if (fields.length > 0) throw coreErrors.permission_denied({ detail: `You may not write ${fields.join(', ')}.`, extensions: { fields } });
}

/** The references among the values of some rows that lead to rows only some callers see. `locations[i]` is where `rows[i]` was sent. */
export async function referencesOf(
  policy: Policy,
  request: CrudRequest,
  rows: readonly Item[],
  locations: readonly FieldError['location'][] = [['body']],
): Promise<ReferenceCheck[]> {
  if (policy.references.size === 0) return [];
  const checks = new Map<Policy, ReferenceCheck>();
  for (const [index, values] of rows.entries()) {
    for (const [name, target] of policy.references) {
      const value = values[name];
      if (value === null || value === undefined) continue;
      const scope = await target.scopeOfEdge(request);
      // Every row is visible: the database's own check of the reference is enough.
      if (scope.compiled.constant === true) continue;
      const check = checks.get(target) ?? { target, scope, references: [] };
      checks.set(target, check);
      check.references.push({ location: [...(locations[index] as FieldError['location']), name], value });
    }
  }
  return [...checks.values()];
}

/** 422 for every value that names no row the caller sees. One statement per table. */
export async function checkReferences(tx: Db, checks: readonly ReferenceCheck[]): Promise<void> {
  const errors = (await Promise.all(checks.map(async (check) => unknownReferences(tx, check)))).flat();
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
