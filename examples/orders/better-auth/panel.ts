import { join, relative } from 'node:path';
import { INVITED, PASSWORD, type Seeded } from './seed.ts';

export interface PanelFacts extends Seeded {
  readonly url: string;
  readonly folder: string;
  readonly seconds: number;
}

/** Each is copy-paste ready in the folder `npm start` was called in, and goes on where the one before ended. */
export function commands({
  url,
  folder,
  invitationId,
  organizationId,
}: PanelFacts): { readonly title: string; readonly command: string }[] {
  const jar = (name: string): string => relative(process.env['INIT_CWD'] ?? process.cwd(), join(folder, `${name}.cookies`));
  const json = `-H 'content-type: application/json' -H 'origin: ${url}'`;
  const as = (name: string): string => `-b ${jar(name)} -c ${jar(name)}`;
  const logIn = (name: string, email: string): string =>
    `curl -s ${url}/auth/sign-in/email ${as(name)} ${json} -d '{"email":"${email}","password":"${PASSWORD}"}'`;
  return [
    { title: 'log in as Ada, who owns Acme', command: logIn('ada', 'ada@acme.example') },
    {
      title: 'place an order for Acme',
      command: `curl -s ${url}/v1/orders ${as('ada')} ${json} -H 'X-Organization: acme' -d '{"item":"Scale","quantity":2}'`,
    },
    {
      title: 'ask for the orders of Globex: 403 not_a_member',
      command: `curl -s ${url}/v1/orders ${as('ada')} -H 'X-Organization: globex'`,
    },
    { title: 'log in as Bob, who is invited to Acme', command: logIn('bob', INVITED.email) },
    { title: 'before Bob accepts, Acme is closed', command: `curl -s ${url}/v1/orders ${as('bob')} -H 'X-Organization: acme'` },
    {
      title: 'accept the invitation that was mailed to Bob',
      command: `curl -s ${url}/auth/organization/accept-invitation ${as('bob')} ${json} -d '{"invitationId":"${invitationId}"}'`,
    },
    { title: "read Acme's orders as Bob", command: `curl -s ${url}/v1/orders ${as('bob')} -H 'X-Organization: acme'` },
    { title: 'Bob is a member, and only owners and admins manage: 403', command: `curl -s ${url}/v1/organization ${as('bob')}` },
    {
      title: 'create an API key for a script of Bob',
      command: `curl -s ${url}/v1/api-keys ${as('bob')} ${json} -d '{"name":"script","scopes":["orders:read"]}'`,
    },
    {
      title: 'remove Bob from Acme; the next request of Bob and of the key is 403',
      command: `curl -s ${url}/auth/organization/remove-member ${as('ada')} ${json} -d '{"memberIdOrEmail":"${INVITED.email}","organizationId":"${organizationId}"}'`,
    },
  ];
}

export function panel(facts: PanelFacts): string {
  return [
    '',
    `  Orders on better-auth, ready in ${facts.seconds.toFixed(1)} s. Everything listens on loopback; Ctrl-C stops it.`,
    '',
    `  API                   ${facts.url}/v1/orders`,
    `  API reference         ${facts.url}/docs`,
    `  login                 ${facts.url}/auth (better-auth; mails are printed here)`,
    `  organizations         Acme (ada@acme.example), Globex (grace@globex.example); password "${PASSWORD}"`,
    `  invitation            ${INVITED.email} is invited to Acme`,
    '',
    '  Try, in another terminal, in this order:',
    ...commands(facts).flatMap(({ title, command }, index) => ['', `  ${index + 1}. ${title}`, `     ${command}`]),
    '',
    '',
  ].join('\n');
}
