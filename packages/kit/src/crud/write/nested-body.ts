import type { FieldError } from '../../errors/kit-error.ts';
import type { JsonSchema, Schema, SchemaIssue, SchemaResult } from '../../http/declare/schema.ts';
import { ItemReader, type ReadItem, repeatedKeys } from '../input/item-reader.ts';
import { type NestedPlan, requiredByPut } from './nested.ts';
import type { Item } from '../declare/item.ts';
import { keyAddress } from '../input/with-address.ts';
import { isMembers } from '../../options/value-rule.ts';

/** A relation in a body: how its items are read, with a key and without. */
interface NestedMember {
  readonly plan: NestedPlan;
  readonly made: ItemReader;
  readonly changed: ItemReader;
}

/** Adds the members of nested relations to the schema of a body. */
export class NestedBody {
  readonly #members: readonly NestedMember[];

  constructor(plans: readonly NestedPlan[]) {
    this.#members = plans.map((plan) => {
      const { target } = plan.edge;
      const options = { policy: target, lookup: target.key, address: keyAddress(target) };
      return {
        plan,
        made: new ItemReader(options, 'create', plan.input),
        changed: new ItemReader(
          options,
          'keyed',
          plan.input.filter((name) => name !== target.key.name),
        ),
      };
    });
  }

  get requiredByPut(): readonly string[] {
    return requiredByPut(this.#members.map(({ plan }) => plan)).map(({ name }) => name);
  }

  /** The JSON Schema of a body, with the relations beside its columns. */
  json(columns: JsonSchema): JsonSchema {
    const properties = Object.fromEntries(
      this.#members.map(({ plan, made, changed }) => [
        plan.name,
        { type: 'array', maxItems: plan.max, items: { anyOf: [changed.json, made.json] }, description: describe(plan) },
      ]),
    );
    return { ...columns, properties: { ...(columns['properties'] as JsonSchema | undefined), ...properties } };
  }

  /** Validates the columns by their schema and each item by the child's; the items come back as they were read, under their relation. */
  async validate(columns: Schema, value: unknown): Promise<SchemaResult<unknown>> {
    if (!isMembers(value)) return columns['~standard'].validate(value);
    const names = new Set(this.#members.map(({ plan }) => plan.name));
    const own = Object.fromEntries(Object.entries(value).filter(([name]) => !names.has(name)));
    const result = await columns['~standard'].validate(own);
    const issues: SchemaIssue[] = [...(result.issues ?? [])];
    const nested: Record<string, readonly ReadItem[]> = {};
    for (const member of this.#members) {
      const given = (value as Item)[member.plan.name];
      if (given !== undefined) nested[member.plan.name] = await read(member, given, issues);
    }
    if (result.issues !== undefined || issues.length > 0) return { issues };
    return { value: { ...(result.value as Item), ...nested } };
  }
}

async function read({ plan, made, changed }: NestedMember, given: unknown, issues: SchemaIssue[]): Promise<readonly ReadItem[]> {
  const path = [plan.name];
  if (!Array.isArray(given)) issues.push({ message: 'must be a list', code: 'invalid_type', path });
  else if (given.length > plan.max) issues.push({ message: `must have at most ${plan.max} items`, code: 'too_big', path });
  else {
    const { key } = plan.edge.target;
    const hasKey = (item: unknown) => typeof item === 'object' && item !== null && (item as Item)[key.name] !== undefined;
    const items = await Promise.all(
      given.map((item: unknown, index) => (hasKey(item) ? changed : made).read(item, ['body', plan.name, index])),
    );
    const repeated = repeatedKeys(
      key,
      items.map((item) => item.key),
    );
    for (const index of repeated)
      issues.push({ message: 'The same row is named more than once.', code: 'duplicate', path: [plan.name, index, key.name] });
    for (const { faults = [] } of items) issues.push(...faults.map(issueOf));
    return items;
  }
  return [];
}

function issueOf({ location, code, message }: FieldError): SchemaIssue {
  return { message, code, path: location.slice(1) };
}

function describe({ missing, edge }: NestedPlan): string {
  const others = missing === 'delete' ? 'Those that are not named are deleted.' : 'Those that are not named stay as they are.';
  return `Rows below this one: with \`${edge.target.key.name}\` one is changed, without it one is made. ${others}`;
}
