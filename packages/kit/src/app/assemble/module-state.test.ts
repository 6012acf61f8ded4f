import { expect, test } from 'vitest';
import { openDatabase } from '../../db/index.ts';
import { moduleState } from './module-state.ts';

const parcels = moduleState<{ readonly carrier: string }>({ name: 'Parcels', setUp: 'add parcels() to the modules of createApp' });

test('the state of a database is found from its handle and from a transaction, until it is released', async () => {
  const db = await openDatabase('sqlite::memory:');
  parcels.bind(db, { carrier: 'ups' });
  await db.transaction(async (tx) => expect(parcels.of(tx)).toEqual({ carrier: 'ups' }));
  expect(parcels.named('default')).toBe(parcels.of(db));
  expect(() => parcels.bind(db, { carrier: 'dhl' })).toThrow('Parcels are already set up for the database "default".');
  expect(parcels.of(db).carrier).toBe('ups');
  parcels.release(db);
  expect(parcels.find(db)).toBeUndefined();
  expect(() => parcels.of(db)).toThrow('Parcels are not set up for the database "default": add parcels() to the modules of createApp.');
  await db.close();
});

test('the state of a database ends when the database is closed', async () => {
  const first = await openDatabase('sqlite::memory:');
  parcels.bind(first, { carrier: 'ups' });
  await first.close();
  expect(() => parcels.named('default')).toThrow('Parcels are not set up for any open database "default"');
  const second = await openDatabase('sqlite::memory:');
  parcels.bind(second, { carrier: 'dhl' });
  expect(parcels.named('default').carrier).toBe('dhl');
  expect(parcels.find(first), 'nothing of a closed database stays in memory').toBeUndefined();
  await second.close();
});

test('an alias that two open databases share is refused instead of guessed', async () => {
  const [first, second] = [await openDatabase('sqlite::memory:'), await openDatabase('sqlite::memory:')];
  parcels.bind(first, { carrier: 'ups' });
  parcels.bind(second, { carrier: 'dhl' });
  expect(() => parcels.named('default')).toThrow('several open databases are called "default"');
  expect(parcels.of(second).carrier).toBe('dhl');
  for (const db of [first, second]) {
    parcels.release(db);
    await db.close();
  }
  expect(() => parcels.named('default')).toThrow('Parcels are not set up for any open database "default"');
});
