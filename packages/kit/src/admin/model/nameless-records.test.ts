import { expect, test } from 'vitest';
import { model, t } from '../../db/index.ts';
import type { App, Module } from '../../app/index.ts';
import { modelResource } from '../../screens/screen.ts';
import { namelessRecords } from './resource-faults.ts';

const links = model('links', { id: t.uuidv7().pk(), left_id: t.uuid(), right_id: t.uuid() });
const invoices = model('invoices', { id: t.uuidv7().pk(), number: t.int(), note: t.text(80).nullable() });
const countries = model('countries', { code: t.text(2).pk(), population: t.int() });

test('kit check warns where a list of the application calls its records by an id, and nowhere else', async () => {
  const resources = [
    modelResource(links),
    modelResource(links, { name: 'named-links', cells: { title: ({ left_id }) => `Link of ${left_id}` }, title: 'title' }),
    modelResource(invoices, { title: 'number' }),
    modelResource(invoices, { name: 'noted-invoices' }),
    modelResource(countries),
  ];
  const shop: Module = { name: 'shop', admin: { resources } };
  const toolkit: Module = { name: 'jobs', admin: { resources: [modelResource(links, { name: 'toolkit-links' })] } };
  const all = [...resources, ...(toolkit.admin?.resources ?? [])];
  const faults = await namelessRecords({ resources: all }).run({ modules: [shop, toolkit] } as unknown as App);
  expect(faults.map(({ id, message }) => `${id} ${message}`)).toEqual([
    'W043 The list "links" of the admin site shows the id of a record as its name.',
    'W043 The list "invoices" of the admin site shows the id of a record as its name.',
  ]);
});
