import { describe, expect, test } from 'vitest';
import { createTable, migration, model, t } from '../../db/index.ts';
import { defineErrors } from '../../errors/catalog.ts';
import { Controller } from '../../http/compile/controller.ts';
import { route } from '../../http/declare/route.ts';
import { allowAny } from '../../permissions/built-ins.ts';
import { createApp } from '../assemble/create-app.ts';
import { definePlugin } from './define-plugin.ts';
import type { Module } from './module.ts';

const parcels = model('parcels', { id: t.uuidv7().pk() });
const initial = migration('0001_initial', [createTable('parcels', parcels.columns)]);
const command = { name: 'parcels', summary: 'send parcels', configure: () => undefined };

const appOf = (...modules: Module[]) =>
  createApp({ database: 'sqlite::memory:', log: { level: 'silent' }, mount: {}, docs: false, modules });

describe('a plugin is checked where it is declared', () => {
  test.each<[string, object, RegExp]>([
    ['an unknown member', { name: 'parcels', midleware: [] }, /unknown option "plugin\.midleware"\. Did you mean "middleware"\?/],
    ['a wrong value', { name: 'parcels', setup: 'now' }, /definePlugin\(\): "?plugin\.setup/],
    ['no name', { setup: () => undefined }, /a plugin: \{ name: "parcels"/],
    ['a name that is not snake_case', { name: 'My Parcels' }, /a name in snake_case of up to 40 characters/],
    ['tables that nothing creates', { name: 'parcels', models: [parcels] }, /has models and no migrations/],
    ['an instance of a class', new (class { name = 'parcels'; })(), /a plain object/], // prettier-ignore
  ])('%s', (_, plugin, message) => {
    expect(() => definePlugin(plugin as Module)).toThrow(message);
  });

  test('every problem is reported together, and a plugin cannot be changed afterwards', () => {
    expect(() => definePlugin({ name: 'Parcels', stop: 1, wat: 2 } as never)).toThrow(/wat[\s\S]*stop[\s\S]*snake_case/);
    expect(Object.isFrozen(definePlugin({ name: 'parcels' }))).toBe(true);
  });
});

describe('order', () => {
  const named = (name: string, more: Partial<Module> = {}) => definePlugin({ name, ...more });
  const orderOf = (...modules: Module[]) => appOf(...modules).modules.map(({ name }) => name);

  test('what a plugin requires, and what it comes after where it is installed, is set up first and its middleware runs first', async () => {
    const seen: string[] = [];
    const watching = (name: string, more: Partial<Module> = {}) =>
      definePlugin({ name, middleware: [{ name, onRequest: () => void seen.push(name) }], ...more });
    class Things extends Controller {
      all = route.get('/', { permission: allowAny }, () => undefined);
    }
    const app = createApp({
      database: 'sqlite::memory:',
      log: { level: 'silent' },
      mount: { '/v1': { '/things': Things } },
      modules: [watching('last', { after: ['first', 'not_installed'], requires: ['middle'] }), watching('middle'), watching('first')],
    });
    expect(app.modules.map(({ name }) => name)).toEqual(['middle', 'first', 'last']);
    await app.inject('/v1/things');
    await app.close();
    expect(seen).toEqual(['middle', 'first', 'last']);
  });

  test('a ring is named from plugin to plugin', () => {
    expect(() => orderOf(named('a', { after: ['b'] }), named('b', { requires: ['a'] }))).toThrow(
      /Modules depend on each other in a cycle: a → b → a\./,
    );
  });
});

describe('conflicts name both plugins and what they both bring', () => {
  const job = (name: string) => ({ name, queue: 'default' });
  const other = model('parcels', { id: t.uuidv7().pk() });
  const table = { models: [parcels], migrations: [initial] };
  test.each<[string, Partial<Module>, Partial<Module>, RegExp]>([
    ['a table', table, { ...table, models: [other] }, /"parcels" and "post" both bring the table "parcels"/],
    ['a command', { commands: [command] }, { commands: [{ ...command }] }, /"parcels" and "post" both bring the command "parcels"/],
    ['a job', { jobs: [job('send')] }, { jobs: [job('send')] }, /"parcels" and "post" both bring the job "send"/],
    [
      'an error code',
      { errors: defineErrors('plugin_test_a', { lost: { status: 409, detail: 'Lost.' } }) },
      { errors: defineErrors('plugin_test_b', { lost: { status: 404, detail: 'Lost.' } }) },
      /"parcels" and "post" both bring the error code "lost"/,
    ],
    [
      'an error code of the toolkit',
      {},
      { errors: defineErrors('plugin_test_c', { not_found: { status: 410, detail: 'Gone.' } }) },
      /"kit" and "post" both bring the error code "not_found"/,
    ],
    [
      'what others use',
      { provides: () => ({ audit: sink }) },
      { provides: () => ({ audit: sink }) },
      /"parcels" and "post" both provide audit/,
    ],
  ])('%s', (_, first, second, message) => {
    expect(() => appOf(definePlugin({ name: 'parcels', ...first }), definePlugin({ name: 'post', ...second }))).toThrow(message);
  });

  test('a model that two plugins share, and a code of the same status, are not conflicts', () => {
    const quota = (module: string) => defineErrors(module, { quota_exceeded: { status: 409, detail: 'Too many.' } });
    appOf(definePlugin({ name: 'parcels', models: [parcels], migrations: [initial], errors: quota('plugin_test_d') }), {
      name: 'post',
      models: [parcels],
      errors: quota('plugin_test_e'),
    });
  });
});

const sink = { record: async () => undefined };

test('a plugin that uses another copy of the package is named, with the places of both', () => {
  const foreign = { ...definePlugin({ name: 'parcels' }), [Symbol.for('kit.plugin.built_with')]: 'file:///other/kit/define-plugin.js' };
  expect(() => appOf(foreign)).toThrow(/The plugin "parcels" uses another copy of this package \(file:\/\/\/other\/kit/);
});
