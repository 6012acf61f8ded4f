// Organizations of a person, and the members and invitations of one.
import { attempt, drawRows, fill, find, isSure, notify, onClick, onSubmit, show, timeText, withPresence } from './dom.js';

const idOf = () => new URLSearchParams(location.search).get('tenant') ?? '';

export async function tenants({ tenants: api }) {
  const draw = async () =>
    drawRows(find('#tenants'), 'tenant', await api.list(), (element, row) => {
      fill(element, { name: row.name, roles: row.roles.join(', ') });
      find('[data-link]', element).href = `members?tenant=${encodeURIComponent(row.id)}`;
      onClick(element, 'choose', async () => {
        await api.choose(row.id);
        notify(find('[data-text-chosen]').textContent);
      });
    });
  onSubmit(find('form#new-tenant'), async (values, form) => {
    await api.create(values);
    form.reset();
    await draw();
  });
  await draw();
}

export async function members({ login, tenants: api }) {
  const id = idOf();
  const draw = async () => {
    const tenant = await api.read(id);
    find('h1').textContent = tenant.name;
    drawRows(find('#members'), 'member', tenant.members, (element, row) => drawMember(element, row));
    drawRows(find('#invitations'), 'invitation', tenant.invitations, (element, row) => drawInvitation(element, row));
    for (const part of document.querySelectorAll('[data-managers]')) show(part, tenant.isManager);
  };
  const drawMember = (element, row) => {
    fill(element, { name: row.name, email: row.email === row.name ? '' : row.email, roles: row.roles.join(', ') });
    find('select', element).value = row.roles[0] ?? '';
    onSubmit(find('form', element), async ({ role }) => {
      await withPresence(login, () => api.changeRole(id, row, role));
      await draw();
      notify(find('[data-text-saved]').textContent);
    });
    onClick(element, 'remove', async () => {
      if (!(await isSure())) return;
      await withPresence(login, () => api.removeMember(id, row));
      await draw();
    });
  };
  const drawInvitation = (element, row) => {
    fill(element, { email: row.email, roles: row.roles.join(', '), expires: timeText(row.expiresAt) });
    onClick(element, 'resend', async () => sent(await api.resend(id, row)));
    onClick(element, 'revoke', async () => {
      await api.revoke(id, row);
      await draw();
    });
  };
  const sent = async (token) => {
    const isLink = token !== null && token !== undefined;
    if (isLink) find('[data-link]').textContent = new URL(`link#tenant-invitation=${token}`, document.baseURI).href;
    show(find('[data-once]'), isLink);
    if (!isLink) notify(find('[data-text-invited]').textContent);
    await draw();
  };
  onSubmit(find('form#invite'), async (values, form) => {
    const token = await withPresence(login, () => api.invite(id, values));
    form.reset();
    await sent(token);
  });
  const leave = find('#leave');
  leave.addEventListener('click', () =>
    attempt(leave.parentElement, async () => {
      if (!(await isSure())) return;
      await api.leave(id);
      location.assign('tenants');
    }),
  );
  await draw();
}
