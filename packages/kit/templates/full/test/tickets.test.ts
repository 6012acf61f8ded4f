import { runDueJobs, startJob } from 'kit/contrib/jobs';
import { testApp } from 'kit/testing';
import { expect, test } from 'vitest';
import { appOptions } from '../src/app.ts';
import { remindAgents } from '../src/remind-agents.ts';
import { helpdesk, people } from './helpdesk.ts';

const printer = { subject: 'The printer is on fire', body: 'Please come.', priority: 'urgent' };

type Desk = Awaited<ReturnType<typeof helpdesk>>;

async function newTicket(desk: Desk): Promise<string> {
  const created = await desk.as('ada').post('/v1/tickets', printer);
  expect(created.statusCode).toBe(201);
  return `/v1/tickets/${created.json<{ id: string }>().id}`;
}

test('a ticket is visible to its author and to the agents of the organization, and to nobody else', async () => {
  await using desk = await helpdesk();
  const url = await newTicket(desk);
  expect((await desk.as('ada').get(url)).json()).toMatchObject({ ...printer, status: 'open', version: 1 });
  expect((await desk.as('sue').get(url)).statusCode).toBe(200);
  expect((await desk.as('bob').get(url)).statusCode).toBe(404);
});

test('a caller who does not belong to the organization has no tenant', async () => {
  await using desk = await helpdesk();
  const url = await newTicket(desk);
  expect((await desk.as('eve').get(url)).json()).toMatchObject({ status: 403, code: 'not_a_member' });
});

test('an author shares a ticket with a colleague, who can then read and comment it', async () => {
  await using desk = await helpdesk();
  const url = await newTicket(desk);
  const shared = await desk.as('ada').put(`${url}/grants`, { items: [{ subject: `user:${people.bob}`, set: 'viewer' }] });
  expect(shared.statusCode).toBe(200);
  expect((await desk.as('bob').post(`${url}/comments`, { text: 'It is out now.' })).statusCode).toBe(201);
  expect((await desk.as('ada').get(`${url}/comments`)).json()).toMatchObject({
    items: [{ text: 'It is out now.', created_by: people.bob }],
  });
});

test('a user of another organization cannot be given access', async () => {
  await using desk = await helpdesk();
  const url = await newTicket(desk);
  const shared = await desk.as('ada').put(`${url}/grants`, { items: [{ subject: `user:${people.eve}`, set: 'viewer' }] });
  expect(shared.statusCode).toBe(422);
});

test('only agents solve tickets, once, and the author is told by webhook', async () => {
  await using desk = await helpdesk();
  for (const person of ['ada', 'bob', 'sue'] as const) await desk.subscribe(person);
  const url = await newTicket(desk);
  expect((await desk.as('ada').post(`${url}/solve`)).statusCode).toBe(403);
  expect((await desk.as('sue').post(`${url}/solve`)).json()).toMatchObject({ status: 'solved' });
  expect((await desk.as('sue').post(`${url}/solve`)).statusCode).toBe(409);
  expect(await desk.received('ada')).toEqual(['ticket.created', 'ticket.solve']);
  expect([await desk.received('bob'), await desk.received('sue')]).toEqual([[], []]);
});

test('organizations with urgent tickets are reminded by webhook', async () => {
  await using desk = await helpdesk();
  await desk.subscribe('sue');
  await newTicket(desk);
  await desk.db.transaction((tx) => startJob(tx, remindAgents, {}));
  expect(await runDueJobs(desk.db)).toMatchObject({ succeeded: 1, failed: 0 });
  expect(await desk.received('sue')).toEqual(['tickets.waiting']);
});

test('the seed of the app fills a database', async () => {
  await using app = await testApp({ ...appOptions, runSeeds: true });
  const rows = await app.app.db.query<{ subject: string }>('select subject from tickets order by subject');
  expect(rows.map(({ subject }) => subject)).toEqual(['The bell is gone', 'The brakes squeak']);
});
