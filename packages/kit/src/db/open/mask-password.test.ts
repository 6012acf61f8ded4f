import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { maskPassword } from './mask-password.ts';
import { openDatabase } from './open-database.ts';

test.each([
  ['postgres://ann:secret@db:5432/shop', 'postgres://ann:***@db:5432/shop'],
  ['postgresql://ann:se@cr@et@db/shop', 'postgresql://ann:***@db/shop'],
  ['postgres://ann:se/cr:et@db/shop', 'postgres://ann:***@db/shop'],
  ['postgres://:secret@db/shop', 'postgres://:***@db/shop'],
  ['postgres://db/shop?user=ann&password=secret&sslmode=require', 'postgres://db/shop?user=ann&password=***&sslmode=require'],
  ['postgres://ann@db/shop?Password=secret', 'postgres://ann@db/shop?Password=***'],
  ['postgres://ann@db:5432/shop', 'postgres://ann@db:5432/shop'],
  ['sqlite:./data/app.db', 'sqlite:./data/app.db'],
])('of %s nothing but the address is shown', (url, shown) => {
  expect(maskPassword(url)).toBe(shown);
});

test('an address that cannot be read is explained without being repeated', async () => {
  const refusal = await openDatabase('postgres://ann:hun/ter2@127.0.0.1:1/shop').then(
    () => null,
    (error: unknown) => error as Error,
  );
  expect(refusal?.message).toContain('write / as %2F');
  expect(inspect(refusal, { depth: 9 })).not.toContain('ter2');
});
