import type { JsonSchema } from './schema.ts';

type Segment<S extends string> = S extends `:${infer Name}` ? { readonly [K in Name]: string } : unknown;

/** The parameters of a path, as a handler gets them where the route declares no `params` schema: `'/:id'` gives `{ id: string }`. */
export type PathParams<P extends string> = P extends `${infer Head}/${infer Tail}` ? Segment<Head> & PathParams<Tail> : Segment<P>;

/** `/v1/orders/:id` → `id`. */
export function pathParameters(path: string): string[] {
  return [...path.matchAll(/:([A-Za-z_]\w*)/g)].map(([, name = '']) => name);
}

/** Every parameter of the path as text: what a route without a `params` schema is read with. */
export function pathParamsSchema(names: readonly string[]): JsonSchema {
  return {
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
    required: [...names],
    additionalProperties: false,
  };
}
