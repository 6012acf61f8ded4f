import { type JsonSchema, jsonSchemaOf, type Schema } from '../../http/declare/schema.ts';
import { pascal } from '../../db/declare/component-name.ts';
import type { Policy } from '../policy/policy.ts';
import { onceNames } from '../policy/give-once.ts';

/** The schema of values that are shown once: sensitive, so that logs mask them. */
export function onceJson(names: readonly string[], { options: { once = {} } }: Policy): JsonSchema {
  const properties = names.map((name) => {
    const { description = 'Shown this once.', nullable } = once[name] ?? {};
    return [name, { type: nullable === true ? ['string', 'null'] : 'string', 'x-sensitive': true, description }];
  });
  return { type: 'object', properties: Object.fromEntries(properties) as JsonSchema };
}

/** The schema of a row, with the values that this operation shows once: `IssuedApiKey`. The same schema where it shows none. */
export function withOnceSchema(policy: Policy, operation: string, item: Schema): Schema {
  const names = onceNames(policy, operation);
  if (names.length === 0) return item;
  const own = pascal(policy.name);
  const json = () => {
    const { $ref, $defs, ...rest } = jsonSchemaOf(item, 'output') as {
      $ref?: string;
      $defs?: Readonly<Record<string, JsonSchema>>;
    } & JsonSchema;
    const root = ($ref === undefined ? rest : ($defs?.[own] ?? rest)) as JsonSchema & {
      required?: readonly string[];
      'x-always'?: readonly string[];
    };
    const shown = onceJson(names, policy)['properties'] as JsonSchema;
    const { 'x-always': always, required = [], properties, ...more } = root;
    const whole = {
      ...more,
      properties: { ...(properties as JsonSchema), ...shown },
      required: [...required, ...names],
      ...(always === undefined ? {} : { 'x-always': [...always, ...names] }),
    };
    const { [own]: _row, ...others } = $defs ?? {};
    return { $ref: `#/$defs/Issued${own}`, $defs: { ...others, [`Issued${own}`]: whole } };
  };
  return { '~standard': { ...item['~standard'], jsonSchema: { input: json, output: json } } };
}
