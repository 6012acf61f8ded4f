import { users } from 'kit/contrib/accounts';
import { insert } from 'kit/db';
import { deliverDue } from 'kit/contrib/webhooks';
import { testApp } from 'kit/testing';
import { appOptions } from '../src/app.ts';
import { memberships, organizations, type Role } from '../src/organizations.ts';
import { startReceiver } from './receiver.ts';

const id = (last: number) => `01890000-0000-7000-8000-00000000000${last}`;

/** ada and bob are members of the first organization, sue is its agent; eve is an agent of the second. */
export const people = { ada: id(1), bob: id(2), sue: id(3), eve: id(4) };
export type Person = keyof typeof people;

const FIRST = id(5);
const SECOND = id(6);
const MEMBERSHIPS: readonly (readonly [Person, string, Role])[] = [
  ['ada', FIRST, 'member'],
  ['bob', FIRST, 'member'],
  ['sue', FIRST, 'agent'],
  ['eve', SECOND, 'agent'],
];

/** A real application on a new database with two organizations. */
export async function helpdesk() {
  const app = await testApp({
    ...appOptions,
    async prepare({ db }) {
      for (const [username, user] of Object.entries(people)) await insert(db, users, { id: user, username });
      for (const organization of [FIRST, SECOND]) await insert(db, organizations, { id: organization, name: organization });
      for (const [person, organization_id, role] of MEMBERSHIPS)
        await insert(db, memberships, { organization_id, user_id: people[person], role });
    },
  });
  const receiver = await startReceiver();
  const { db } = app.app;
  return {
    db,
    /** Creates a webhook endpoint of a person in the first organization, which subscribes to everything. */
    async subscribe(person: Person) {
      const path = `/${person}`;
      const created = await this.as(person).post('/v1/webhooks', { url: receiver.url(path), events: ['*'] });
      receiver.trust(path, created.json<{ secret: string }>().secret);
    },
    /** Sends what is due; the types of all events that a person has received. */
    async received(person: Person) {
      await deliverDue(db);
      return receiver.typesAt(`/${person}`);
    },
    /** Requests of a person to the first organization. */
    as(person: Person) {
      const client = app.as({ id: people[person] });
      const headers = { 'x-organization': FIRST };
      return {
        get: (url: string) => client.get(url, headers),
        post: (url: string, body?: object) => client.post(url, body, headers),
        put: (url: string, body: object) => client.put(url, body, headers),
      };
    },
    async [Symbol.asyncDispose]() {
      await app.close();
      await receiver.close();
    },
  };
}
