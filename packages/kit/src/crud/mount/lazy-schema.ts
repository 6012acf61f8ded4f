import type { Schema } from '../../http/declare/schema.ts';

export function once<V>(make: () => V): () => V {
  let made: { readonly value: V } | undefined;
  return () => (made ??= { value: make() }).value;
}

/** A schema that is made when it is first used: relations are known by then. */
export function lazySchema(make: () => Schema): Schema {
  const schema = once(make);
  return {
    '~standard': {
      version: 1,
      vendor: 'kit',
      validate: (value) => schema()['~standard'].validate(value),
      jsonSchema: {
        input: (options) => (schema()['~standard'].jsonSchema as NonNullable<Schema['~standard']['jsonSchema']>).input(options),
        output: (options) => (schema()['~standard'].jsonSchema as NonNullable<Schema['~standard']['jsonSchema']>).output(options),
      },
    },
  };
}

/** A schema that reads what was sent itself: the text of the address, or the tree of QUERY. */
export function lazyQuery(make: () => Schema): Schema {
  return Object.assign(lazySchema(make), { isRawQuery: true as const });
}
