export const TOKEN = 'a-token-of-the-benchmark';
export const MANY_TOOLS = 200;

const text = (maxLength: number) => ({ type: 'string', maxLength });

export const ORDER = {
  type: 'object',
  properties: { item: text(100), quantity: { type: 'integer', minimum: 1, maximum: 1000 }, note: text(500) },
  required: ['item', 'quantity'],
  additionalProperties: false,
} as const;

export const STORED_ORDER = {
  ...ORDER,
  properties: { id: text(40), ...ORDER.properties },
  required: ['id', ...ORDER.required],
} as const;

/** What is ordered, by HTTP and by a tool call. */
export const WANTED = { item: 'Beans', quantity: 2, note: 'as last time' } as const;
