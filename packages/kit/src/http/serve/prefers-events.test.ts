import { expect, test } from 'vitest';
import { prefersEvents } from './prefers-events.ts';

test.each([
  ['text/event-stream', true],
  ['Text/Event-Stream; q=1.0', true],
  ['text/html, text/event-stream;q=0.5', true],
  ['application/json, text/event-stream', true],
  ['application/json;q=0.1,text/event-stream;charset=utf-8', true],
  ['text/event-stream, */*;q=0.1', true],
  ['text/event-stream;q=0', false],
  ['text/event-stream;q=0.0, application/json', false],
  ['application/json, text/event-stream;q=0.5', false],
  ['text/event-stream;q=x', false],
  ['*/*', false],
  ['text/*', false],
  ['text/event-streams', false],
  ['', false],
])('Accept: %s', (accept, events) => {
  expect(prefersEvents(accept)).toBe(events);
});
