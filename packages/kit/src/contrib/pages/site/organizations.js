// The organizations of better-auth, by the routes of its plugin.
import { call } from './call.js';
import { facts } from './dom.js';

const post = (path, body = {}) => call('POST', `${facts.tenants.base}/organization${path}`, body);
const get = (path) => call('GET', `${facts.tenants.base}/organization${path}`);
const rolesOf = (list) => list.split(',');

export async function list() {
  return (await get('/list')).map(({ id, name }) => ({ id, name, roles: [] }));
}

export async function create({ name }) {
  const random = [...crypto.getRandomValues(new Uint8Array(3))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  const readable = name
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '');
  return post('/create', { name, slug: `${readable || 'organization'}-${random}` });
}

export async function choose(id) {
  await post('/set-active', { organizationId: id });
}

export async function read(id) {
  const found = await get(`/get-full-organization?organizationId=${encodeURIComponent(id)}`);
  const { role } = await get(`/get-active-member-role?organizationId=${encodeURIComponent(id)}`);
  return {
    name: found.name,
    isManager: rolesOf(role).some((each) => facts.tenants.managers.includes(each)),
    members: found.members.map((each) => ({
      id: each.id,
      name: each.user?.name || each.userId,
      email: each.user?.email ?? '',
      roles: rolesOf(each.role),
    })),
    invitations: found.invitations
      .filter(({ status }) => status === 'pending')
      .map((each) => ({ id: each.id, email: each.email, role: each.role, roles: rolesOf(each.role), expiresAt: each.expiresAt })),
  };
}

export async function changeRole(id, member, role) {
  await post('/update-member-role', { organizationId: id, memberId: member.id, role });
}

export async function removeMember(id, member) {
  await post('/remove-member', { organizationId: id, memberIdOrEmail: member.id });
}

export async function leave(id) {
  await post('/leave', { organizationId: id });
}

/** The application's instance sends the mail. */
export async function invite(id, { email, role }) {
  await post('/invite-member', { organizationId: id, email, role });
  return null;
}

export async function resend(id, { email, role }) {
  await post('/invite-member', { organizationId: id, email, role, resend: true });
  return null;
}

export async function revoke(id, invitation) {
  await post('/cancel-invitation', { invitationId: invitation.id });
}

export async function accept(token) {
  await post('/accept-invitation', { invitationId: token });
}
