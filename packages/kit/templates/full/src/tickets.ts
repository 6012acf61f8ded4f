import { hasScopes } from 'kit';
import { grants, objectActions, sharing } from 'kit/contrib/grants';
import { CrudController, many, one, resource } from 'kit/crud';
import { model, t, timestamps, userStamps, versioned } from 'kit/db';
import { isAgent, organizations } from './organizations.ts';

export const tickets = model(
  'tickets',
  {
    id: t.uuidv7().pk(),
    organization_id: t.ref(() => organizations).readOnly(),
    author_id: t.uuid().readOnly().person(),
    subject: t.text(200),
    body: t.text(),
    priority: t.enum(['normal', 'urgent']).dbDefault('normal'),
    status: t.enum(['open', 'solved']).dbDefault('open'),
    ...timestamps(),
    ...versioned(),
  },
  { indexes: [{ columns: ['organization_id', 'author_id', '-id'] }, { columns: ['organization_id', 'status'] }] },
);

export const comments = model(
  'comments',
  { id: t.uuidv7().pk(), ticket_id: t.ref(() => tickets).readOnly(), text: t.text(5000), ...timestamps(), ...userStamps() },
  { indexes: [{ columns: ['ticket_id', '-id'] }] },
);

/** What can be done to a ticket, and the names under which its author shares it. */
export const ticketActions = objectActions(tickets, {
  actions: ['view', 'change', 'delete', 'share', 'solve', 'reopen'],
  sets: { viewer: ['view'], editor: ['viewer', 'change', 'reopen'] },
});

/** Authors see their own tickets, agents all tickets of their organization, colleagues those that were shared with them. */
export const ticketResource = resource(tickets, {
  tenant: 'organization_id',
  owner: { column: 'author_id', unless: isAgent },
  access: grants(tickets),
  version: 'version',
  relations: { comments: many(() => comments, 'ticket_id', { order: ['created_at'], limit: 100 }) },
  state: 'status',
  transitions: {
    solve: { from: ['open'], to: 'solved', permission: isAgent, summary: 'Mark the ticket as solved' },
    reopen: { from: ['solved'], to: 'open', summary: 'Open the ticket again' },
  },
  // ticket.created, ticket.updated, ticket.solve, …: sent to the webhook endpoints that the author has in the organization.
  events: true,
  admin: { rows: true, tenant: 'all', access: false },
});

/** A comment is visible to everyone who sees its ticket. */
export const commentResource = resource(comments, {
  rows: () => ({ ticket: { is: {} } }),
  relations: { ticket: one(() => tickets, 'ticket_id') },
});

/** People come with a session, programs with an API key that has the scope. */
const permission = hasScopes({ allowUnscoped: true });

class Tickets extends CrudController(ticketResource, {
  permission,
  scope: 'tickets',
  filters: { status: ['eq'] },
  search: ['subject', 'body'],
  expand: ['comments'],
}) {}

/** With GET, PUT and DELETE of `/{id}/grants`. */
export class TicketController extends sharing(Tickets) {
  static override readonly tags = ['tickets'];
}

export class CommentController extends CrudController(commentResource, {
  permission,
  scope: 'tickets',
  parent: { relation: 'ticket' },
  operations: { update: false, partialUpdate: false, destroy: false },
}) {
  static override readonly tags = ['comments'];
}
