import type { Module } from 'kit';
import { modelResource } from 'kit/admin';
import initial from '../migrations/0001_initial.ts';
import { organizationCommand } from './commands.ts';
import { memberships, organizations } from './organizations.ts';
import { remindAgents } from './remind-agents.ts';
import { comments, tickets, ticketResource } from './tickets.ts';

export function helpdesk(): Module {
  return {
    name: 'helpdesk',
    requires: ['accounts', 'grants', 'jobs', 'webhooks'],
    models: [organizations, memberships, tickets, comments],
    migrations: [initial],
    jobs: [remindAgents],
    commands: [organizationCommand],
    admin: {
      resources: [
        modelResource(ticketResource, {
          label: 'Tickets',
          singular: 'Ticket',
          group: 'Helpdesk',
          columns: ['subject', 'priority', 'status', 'author_id', 'organization_id', 'created_at'],
        }),
      ],
    },
  };
}
