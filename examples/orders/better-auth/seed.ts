import type { App } from 'kit';
import type { Auth, Mail } from './auth.ts';

export const PASSWORD = 'correct horse battery';

/** Two organizations with an owner each, and a colleague who is invited to the first. */
const OWNERS = [
  { name: 'Ada', email: 'ada@acme.example', organization: { name: 'Acme', slug: 'acme' }, items: ['Filter paper', 'Grinder'] },
  { name: 'Grace', email: 'grace@globex.example', organization: { name: 'Globex', slug: 'globex' }, items: ['Kettle'] },
] as const;
export const INVITED = { name: 'Bob', email: 'bob@acme.example' } as const;

export interface Seeded {
  /** Of Bob, to Acme. */
  readonly invitationId: string;
  /** Of Acme. */
  readonly organizationId: string;
}

/** Does what people do, through the same routes: sign-up, verification, login, organization, orders, invitation. Repeatable. */
export async function seed(app: App, auth: Auth, baseURL: string, mails: readonly Mail[]): Promise<Seeded> {
  for (const owner of OWNERS) {
    const cookie = await logIn(app, owner, baseURL, mails);
    const call = caller(app, baseURL, cookie);
    if (await call('POST', '/auth/organization/create', owner.organization))
      for (const [index, item] of owner.items.entries())
        await call('POST', '/v1/orders', { item, quantity: index + 1 }, { 'x-organization': owner.organization.slug });
  }
  await logIn(app, INVITED, baseURL, mails);
  const cookie = await logIn(app, OWNERS[0], baseURL, mails);
  const [acme] = await auth.api.listOrganizations({ headers: new Headers({ cookie }) });
  const invitation = { email: INVITED.email, role: 'member' as const, organizationId: acme?.id, resend: true };
  await caller(app, baseURL, cookie)('POST', '/auth/organization/invite-member', invitation);
  const mail = mails.findLast(({ to, subject }) => to === INVITED.email && subject.startsWith('Invitation'));
  return { invitationId: mail?.link ?? '', organizationId: acme?.id ?? '' };
}

async function logIn(
  app: App,
  person: { readonly name: string; readonly email: string },
  baseURL: string,
  mails: readonly Mail[],
): Promise<string> {
  const post = (path: string, body: object) =>
    app.inject({ method: 'POST', url: `/auth/${path}`, payload: body, headers: { origin: baseURL } });
  const known = await post('sign-in/email', { email: person.email, password: PASSWORD });
  if (known.statusCode === 200) return cookieOf(known.headers['set-cookie']);
  await post('sign-up/email', { name: person.name, email: person.email, password: PASSWORD });
  const link = mails.findLast(({ to }) => to === person.email)?.link ?? '';
  await app.inject(link.slice(baseURL.length));
  return cookieOf((await post('sign-in/email', { email: person.email, password: PASSWORD })).headers['set-cookie']);
}

function cookieOf(lines: string | string[] | undefined): string {
  return [lines ?? []]
    .flat()
    .map((line) => line.split(';', 1)[0])
    .join('; ');
}

function caller(app: App, baseURL: string, cookie: string) {
  return async (method: 'POST', url: string, body: object, headers: Record<string, string> = {}): Promise<boolean> => {
    const response = await app.inject({ method, url, payload: body, headers: { origin: baseURL, cookie, ...headers } });
    return response.statusCode < 300;
  };
}
