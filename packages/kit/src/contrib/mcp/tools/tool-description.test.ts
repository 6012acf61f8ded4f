import { expect, test } from 'vitest';
import type { CompiledRoute } from '../../../http/exchange/compiled-route.ts';
import { describedBy } from './tool-description.ts';

test.each([
  ['order', 'create', 'Creates an order.'],
  ['category', 'list', 'Lists the categories that you can see, a page at a time.'],
  ['box', 'query', 'Finds boxes by a tree of conditions, a page at a time.'],
  ['ticket', 'create', 'Creates a ticket.'],
  ['user', 'destroy', 'Deletes a user.'],
  ['invoice', 'approve', 'Changes the state of an invoice: approve.'],
  ['open_item', 'transitions', 'Lists the changes of state that are possible for an open item.'],
  ['invoice', 'remind', 'Does "remind" for an invoice.', 'one'],
  ['invoice', 'remind', 'Does "remind" for several invoices. Each has its own result; a dry run says what would happen.', 'many'],
])('%s, %s: %s', (resource, operation, sentence, of?: string) => {
  expect(describedBy({ metadata: { crud: { resource, operation, of } } } as unknown as CompiledRoute)).toBe(sentence);
});
