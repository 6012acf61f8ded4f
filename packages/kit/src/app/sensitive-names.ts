import type { Model } from '../db/model.ts';
import { sensitiveSchemaOf } from '../db/column-json.ts';
import { sensitiveNames } from '../db/sensitive-members.ts';
import type { CompiledRoute } from '../http/compiled-route.ts';

interface Declarations {
  readonly modules: readonly { readonly models?: readonly Pick<Model, 'columns'>[] | undefined }[];
  readonly routes: readonly Pick<CompiledRoute, 'params' | 'query' | 'headers' | 'body'>[];
}

/** Names that some column, or some schema of what clients send, marks as sensitive, at any depth. */
export function sensitiveNamesOf({ modules, routes }: Declarations): ReadonlySet<string> {
  const columns = modules.flatMap(({ models = [] }) => models.flatMap((model) => Object.entries(model.columns)));
  const inputs = routes.flatMap(({ params, query, headers, body }) => [params, query, headers, body]);
  return new Set([
    ...columns.flatMap(([name, { settings }]) => {
      const members = sensitiveSchemaOf(settings);
      const inside = members === undefined ? [] : sensitiveNames(members);
      return settings.sensitive ? [name].concat(inside) : inside;
    }),
    ...inputs.flatMap((input) => (input === undefined ? [] : sensitiveNames(input.json))),
  ]);
}

const MASK = '[masked]';
/** Deeper values are rare in a log, and may have no end. */
const DEPTH_MAX = 8;

/** A log record in which no member of these names shows its value. Without any, the record itself. */
export function maskedRecord<R extends object>(record: R, names: ReadonlySet<string>): R {
  return names.size === 0 ? record : (maskedValue(record, names, 0) as R);
}

function maskedValue(value: unknown, names: ReadonlySet<string>, depth: number): unknown {
  if (typeof value !== 'object' || value === null || depth > DEPTH_MAX) return value;
  if (Array.isArray(value)) {
    const items = value.map((item) => maskedValue(item, names, depth + 1));
    return items.some((item, index) => item !== value[index]) ? items : value;
  }
  // Errors, dates and the like are for the logger's serializers.
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  let copy: Record<string, unknown> | undefined;
  for (const [name, member] of Object.entries(value)) {
    const shown = names.has(name) && member !== null && member !== undefined ? MASK : maskedValue(member, names, depth + 1);
    if (shown !== member) (copy ??= { ...value })[name] = shown;
  }
  return copy ?? value;
}
