import { partSchemaOf, type AnswerOf, type Schema, type SchemaIssue, type SchemaResult } from './schema.ts';

/** The one envelope of lists. `next` and `previous` appear where a list has cursors. */
export interface Page<Item> {
  readonly items: readonly Item[];
  readonly count: number | null;
  readonly next?: string | null | undefined;
  readonly previous?: string | null | undefined;
}

/**
 * The envelope's schema around an item's: `response: page(OrderOut)`.
 *
 * @example
 * ```ts
 * class OrderController extends Controller {
 *   list = route.get('/', { permission: isAuthenticated, response: page(OrderOut) }, async ({ db }) => {
 *     const items = await list(db, orders, { limit: 50 });
 *     return { items, count: items.length };
 *   });
 * }
 * ```
 */
export function page<S extends Schema>(item: S): Schema<Page<AnswerOf<S>>> {
  const envelope = (direction: 'input' | 'output') => {
    return {
      type: 'object',
      properties: {
        items: { type: 'array', items: partSchemaOf(item, direction) },
        count: { anyOf: [{ type: 'integer', minimum: 0 }, { type: 'null' }] },
        next: { anyOf: [{ type: 'string' }, { type: 'null' }] },
        previous: { anyOf: [{ type: 'string' }, { type: 'null' }] },
      },
      required: ['items', 'count'],
      additionalProperties: false,
    };
  };
  return {
    '~standard': {
      version: 1,
      vendor: 'kit',
      validate: (value) => validatePage<AnswerOf<S>>(item, value),
      jsonSchema: { input: () => envelope('input'), output: () => envelope('output') },
    },
  };
}

async function validatePage<Item>(item: Schema, value: unknown): Promise<SchemaResult<Page<Item>>> {
  const candidate = value as Partial<Page<unknown>> | null;
  if (typeof candidate !== 'object' || candidate === null || !Array.isArray(candidate.items)) {
    return { issues: [{ message: 'Expected a page with items.', path: ['items'] }] };
  }
  const issues: SchemaIssue[] = [];
  const items: unknown[] = [];
  for (const [index, each] of candidate.items.entries()) {
    const result = await item['~standard'].validate(each);
    if (result.issues === undefined) items.push(result.value);
    else for (const issue of result.issues) issues.push({ ...issue, path: ['items', index, ...(issue.path ?? [])] });
  }
  return issues.length > 0 ? { issues } : { value: { ...candidate, items } as Page<Item> };
}
