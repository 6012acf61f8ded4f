import type { User } from 'kit';
import { accountsOf, createUser, type MailMessage } from 'kit/contrib/accounts';
import { createApiKey } from 'kit/contrib/apikeys';
import { addMember, createTenant } from 'kit/contrib/tenants';
import { runDueJobs } from 'kit/contrib/jobs';
import { deliverDue } from 'kit/contrib/webhooks';
import { testApp, type TestApp } from 'kit/testing';
import { appOptions } from '../src/app.ts';
import { startReceiver } from './receiver.ts';

/** Two customers: ada owns Acme and bob is a member of it; eve owns Rival. */
export async function people({ app: { db } }: TestApp) {
  const person = (username: string) => createUser(db, { username, email: `${username}@example.com` }, accountsOf(db).management(null));
  const [ada, bob, eve] = [await person('ada'), await person('bob'), await person('eve')];
  const acme = await createTenant(db, { name: 'Acme', slug: 'acme', owner: ada.id });
  await createTenant(db, { name: 'Rival', slug: 'rival', owner: eve.id });
  await addMember(db, { tenant: acme.id, user: bob.id, roles: ['member'] });
  return { acme: acme.id, ada, bob, eve };
}

/** A real application on a new database, with these people and a receiver of webhooks. */
export async function company() {
  const mails: MailMessage[] = [];
  const app = await testApp(appOptions({ send: async (mail) => void mails.push(mail) }));
  const { acme, ada, bob, eve } = await people(app);
  const receiver = await startReceiver();
  const { db } = app.app;
  return {
    app,
    db,
    /** Requests of people, each in their own company. */
    ada: app.as(ada, { tenant: 'acme' }),
    bob: app.as(bob, { tenant: 'acme' }),
    eve: app.as(eve, { tenant: 'rival' }),
    acme,
    people: { ada, bob, eve },
    /** A key of a person's company. */
    key: async (user: User, scopes: readonly string[]) => (await createApiKey(db, { user, name: 'script', scopes: [...scopes] })).raw,
    receiver,
    /** Sends the mails that are due, and returns the newest. */
    async mailed() {
      await runDueJobs(db);
      return mails.at(-1);
    },
    /** Sends what is due; the types of all events that have arrived at a path. */
    async received(path: string) {
      await deliverDue(db);
      return receiver.typesAt(path);
    },
    async [Symbol.asyncDispose]() {
      await app.close();
      await receiver.close();
    },
  };
}
