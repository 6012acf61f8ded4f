import { expect, expectTypeOf, test } from 'vitest';
import { Container, fromContext, override, scoped, service, singleton, transient, value } from './index.ts';

interface Mailer {
  send(to: string): string;
}
const settings = service<{ from: string }>('settings');
const mailer = service<Mailer>('mailer');
const requestId = service<string>('request_id');
const cart = service<{ readonly lines: string[] }>('cart');
const stamp = service<{ readonly serial: number }>('stamp');

const list = [
  value(settings, { from: 'kit@example.org' }),
  singleton(mailer, { settings }, async ({ settings }) => ({ send: (to: string) => `${settings.from} -> ${to}` })),
  fromContext(requestId, (context: { id: string }) => context.id),
  scoped(cart, { requestId }, ({ requestId }) => ({ lines: [requestId] })),
];

test('a service is built from its dependencies and arrives with its own type', async () => {
  const container = new Container(list);
  const built = await container.get(mailer);
  expectTypeOf(built).toEqualTypeOf<Mailer>();
  expect(built.send('a@b.c')).toBe('kit@example.org -> a@b.c');
});

test('a factory that returns the wrong type, or reads a dependency it did not name, does not compile', () => {
  // @ts-expect-error a mailer is not a number
  singleton(mailer, {}, () => 1);
  // @ts-expect-error settings was not asked for
  singleton(mailer, {}, ({ settings }) => ({ send: () => settings.from }));
});

test('a singleton is built once, also for callers that ask while it is being built', async () => {
  let count = 0;
  const container = new Container([
    singleton(stamp, {}, async () => {
      await Promise.resolve();
      return { serial: ++count };
    }),
  ]);
  const answers = await Promise.all([container.get(stamp), container.scope().get(stamp), container.get(stamp)]);
  expect(new Set(answers).size).toBe(1);
  expect(count).toBe(1);
});

test('a scoped service is shared within a request and never between two', async () => {
  const container = new Container(list);
  const [first, second] = [container.scope({ id: 'one' }), container.scope({ id: 'two' })];
  expect(await first.get(cart)).toBe(await first.get(cart));
  expect((await first.get(cart)).lines).toEqual(['one']);
  expect((await second.get(cart)).lines).toEqual(['two']);
});

test('a transient service is new for everyone who asks', async () => {
  let count = 0;
  const scope = new Container([transient(stamp, {}, () => ({ serial: ++count }))]).scope();
  expect([await scope.get(stamp), await scope.get(stamp)]).toEqual([{ serial: 1 }, { serial: 2 }]);
});

test('a failed factory is tried again by the next caller', async () => {
  let attempts = 0;
  const container = new Container([
    singleton(stamp, {}, () => {
      attempts += 1;
      if (attempts === 1) throw new Error('not yet');
      return { serial: attempts };
    }),
  ]);
  await expect(container.get(stamp)).rejects.toThrow('not yet');
  expect(await container.get(stamp)).toEqual({ serial: 2 });
});

test('start builds every singleton and names the one that cannot be built', async () => {
  const container = new Container([
    singleton(stamp, {}, () => {
      throw new Error('connection refused');
    }),
  ]);
  await expect(container.start()).rejects.toThrow('The service stamp could not be built: connection refused');
});

test('disposers run in reverse order, dependents first, scopes apart from the application', async () => {
  const seen: string[] = [];
  const dispose = (name: string) => ({
    dispose: async () => {
      await Promise.resolve();
      seen.push(name);
    },
  });
  const [pool, repository, unit, note] = [
    service<object>('pool'),
    service<object>('repository'),
    service<object>('unit'),
    service<object>('note'),
  ];
  const container = new Container([
    singleton(repository, { pool }, () => ({}), dispose('repository')),
    singleton(pool, {}, () => ({}), dispose('pool')),
    scoped(unit, { repository }, () => ({}), dispose('unit')),
    transient(note, { unit }, () => ({}), dispose('note')),
  ]);
  const scope = container.scope();
  await scope.get(note);
  await scope.end();
  expect(seen).toEqual(['note', 'unit']);
  await container.end();
  expect(seen).toEqual(['note', 'unit', 'repository', 'pool']);
});

test('one failing disposer does not keep the others from running', async () => {
  const seen: string[] = [];
  const [first, second] = [service<number>('first'), service<number>('second')];
  const container = new Container([
    singleton(first, {}, () => 1, { dispose: () => void seen.push('first') }),
    singleton(second, { first }, () => 2, { dispose: () => Promise.reject(new Error('stuck')) }),
  ]);
  await container.start();
  await expect(container.end()).rejects.toThrow('1 service(s) could not be disposed of.');
  expect(seen).toEqual(['first']);
});

test('an instance that is still being built when its owner ends is disposed of too', async () => {
  const seen: string[] = [];
  const gate = Promise.withResolvers<void>();
  const container = new Container([
    singleton(stamp, {}, () => gate.promise.then(() => ({ serial: 1 })), { dispose: () => void seen.push('stamp') }),
  ]);
  const pending = container.get(stamp);
  const ended = container.end();
  gate.resolve();
  await Promise.all([pending, ended]);
  expect(seen).toEqual(['stamp']);
});

test('an ended scope refuses with a sentence instead of leaking an instance that is never disposed of', async () => {
  const container = new Container(list);
  const used = container.scope({ id: 'one' });
  await used.get(cart);
  await used.end();
  const unused = container.scope({ id: 'two' });
  expect(unused.end()).toBeUndefined();
  for (const scope of [used, unused]) await expect(scope.get(cart)).rejects.toThrow('cart was asked for after its request ended');
});

test('a scoped service outside a request, and an unknown service, are refused with a sentence', async () => {
  const container = new Container(list);
  await expect(container.get(cart)).rejects.toThrow('cart is scoped: it exists only inside a request');
  await expect(container.get(stamp)).rejects.toThrow('Nothing provides stamp');
});

test('override replaces a service for a test and leaves the application list alone', async () => {
  const quiet: Mailer = { send: () => 'swallowed' };
  const tested = new Container(override(list, [value(mailer, quiet)]));
  expect(await tested.get(mailer)).toBe(quiet);
  expect((await new Container(list).get(mailer)).send('x')).toBe('kit@example.org -> x');
  expect(() => override(list, [value(stamp, { serial: 1 })])).toThrow('nothing provides stamp');
});

test('await using ends the container', async () => {
  const seen: string[] = [];
  {
    await using container = new Container([singleton(stamp, {}, () => ({ serial: 1 }), { dispose: () => void seen.push('stamp') })]);
    await container.get(stamp);
  }
  expect(seen).toEqual(['stamp']);
});
