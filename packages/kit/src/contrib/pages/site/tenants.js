// The tenants of tenants(), by the routes of TenantController.
import { call } from './call.js';
import { facts } from './dom.js';

const route = (method, path, body) => call(method, `${facts.tenants.base}${path}`, body);

/** All pages of a list. `next` is the query string of the following one. */
async function every(path, parameters = '') {
  const items = [];
  for (let query = `?limit=100${parameters}`; query !== null;) {
    const page = await route('GET', `${path}${query}`);
    items.push(...page.items);
    query = page.next;
  }
  return items;
}

export async function list() {
  return (await every('')).map(({ id, name, roles }) => ({ id, name, roles }));
}

export async function create({ name }) {
  return route('POST', '', { name });
}

export async function choose(id) {
  await route('POST', `/${id}/choose`);
}

export async function read(id) {
  const { name, roles } = await route('GET', `/${id}`);
  const isManager = roles.some((role) => facts.tenants.managers.includes(role));
  const members = await every(`/${id}/members`, '&expand=user');
  const invitations = isManager ? await every(`/${id}/invitations`) : [];
  return {
    name,
    isManager,
    members: members.map((each) => ({
      id: each.id,
      name: each.user?.name ?? each.user_id,
      email: each.user?.email ?? '',
      roles: each.roles,
    })),
    invitations: invitations.map((each) => ({ id: each.id, email: each.email, roles: each.roles, expiresAt: each.expires_at })),
  };
}

export async function changeRole(id, member, role) {
  await route('PATCH', `/${id}/members/${member.id}`, { roles: [role] });
}

export async function removeMember(id, member) {
  await route('DELETE', `/${id}/members/${member.id}`);
}

export async function leave(id) {
  await route('POST', `/${id}/leave`);
}

/** The token for the link, where the application sends no mail. */
export async function invite(id, { email, role }) {
  return (await route('POST', `/${id}/invitations`, { email, roles: [role] })).token;
}

export async function resend(id, invitation) {
  return (await route('POST', `/${id}/invitations/${invitation.id}/resend`)).token ?? null;
}

export async function revoke(id, invitation) {
  await route('DELETE', `/${id}/invitations/${invitation.id}`);
}

/** As the person at the browser, or with `username` and `password` as a new one. */
export async function accept(token, person = {}) {
  await route('POST', '/invitations/accept', { token, ...person });
}
