import type { RouteSchema } from '../exchange/compiled-route.ts';
import { pathParameters } from '../declare/path-params.ts';
import { isRawQuery, type Schema, type SchemaResult } from '../declare/schema.ts';
import { flattened, propertiesOf } from '../json/schema-node.ts';

/**
 * The parameters of a route below `/t/:tenant`: a schema that knows nothing of tenants gets the others, so that any controller can be mounted
 * there. The tenant is found before the parameters are read.
 */
export function withTenantParams(
  declared: RouteSchema | undefined,
  path: string,
  { tenantParams }: { /** Parameters of paths that name the tenant. */ readonly tenantParams: readonly string[] },
): RouteSchema | undefined {
  if (declared === undefined) return undefined;
  const known = new Set(propertiesOf(flattened(declared.json, declared.json)).map(([name]) => name));
  const added = pathParameters(path).filter((name) => tenantParams.includes(name) && !known.has(name));
  if (added.length === 0) return declared;
  const { properties = {}, required = [] } = declared.json as { readonly properties?: object; readonly required?: readonly string[] };
  const tenants = Object.fromEntries(added.map((name) => [name, { type: 'string', description: 'The tenant, by its slug or id.' }]));
  const standard = declared.schema['~standard'];
  const validate = (value: unknown): SchemaResult<unknown> | Promise<SchemaResult<unknown>> => {
    const rest = { ...(value as Readonly<Record<string, unknown>>) };
    const names: Record<string, unknown> = {};
    for (const name of added) {
      names[name] = rest[name];
      delete rest[name];
    }
    const withNames = (result: SchemaResult<unknown>): SchemaResult<unknown> =>
      result.issues === undefined ? { value: { ...(result.value as object), ...names } } : result;
    const result = standard.validate(rest);
    return result instanceof Promise ? result.then(withNames) : withNames(result);
  };
  const schema: Schema = { '~standard': { ...standard, validate } };
  return {
    schema: isRawQuery(declared.schema) ? Object.assign(schema, { isRawQuery: true as const }) : schema,
    json: { ...declared.json, type: 'object', properties: { ...tenants, ...properties }, required: [...added, ...required] },
  };
}
