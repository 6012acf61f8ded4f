import { ruleResult } from '../../auth/rights/rule-result.ts';
import type { Db } from '../../db/engine/db.ts';
import { patchSchema } from '../../db/declare/model-schema.ts';
import type { FieldError } from '../../errors/kit-error.ts';
import type { Item } from '../declare/item.ts';
import { placeBelow } from '../input/item-error.ts';
import { callerOf, type CrudRequest } from '../policy/crud-request.ts';
import type { Policy } from '../policy/policy.ts';
import type { RowIntent } from './intent.ts';
import { isMembers } from '../../options/value-rule.ts';

/** A row that is made or changed, as `validate` of its resource sees it. */
export interface JudgedRow extends Pick<RowIntent, 'at' | 'valuesAt'> {
  readonly values: Item;
  readonly before: Item | null;
}

/** What `validate` of a resource says of some rows, each error at the place of its row in the request. */
export async function ruleFaults(policy: Policy, db: Db, request: CrudRequest, rows: readonly JudgedRow[]): Promise<FieldError[]> {
  const { validate } = policy.options;
  if (validate === undefined) return [];
  const caller = callerOf(request);
  const faults: FieldError[] = [];
  for (const { values, before, at, valuesAt = at } of rows) {
    const given = await validate({ input: values, before, caller, db });
    const found = ruleResult('validate', `resource(${policy.model.name})`, given);
    if (at === undefined || valuesAt === undefined) faults.push(...found);
    else for (const { location, code, message } of found) faults.push({ location: placeBelow(at, valuesAt, location), code, message });
  }
  return faults;
}

/** The values of an item that their columns accept, each for itself: rules are asked about them where the item as a whole is refused. */
export async function acceptedValues(policy: Policy, input: readonly string[], given: unknown): Promise<Item> {
  if (!isMembers(given)) return {};
  const accepted: Item = {};
  for (const name of input) {
    if (!Object.hasOwn(given, name)) continue;
    const schema = patchSchema<Item>(policy.inputColumns([name]));
    const result = await schema['~standard'].validate({ [name]: (given as Item)[name] });
    if (result.issues === undefined) Object.assign(accepted, result.value);
  }
  return accepted;
}
