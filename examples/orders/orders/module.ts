import type { Module } from 'kit';
import { orderAdmin } from './admin.ts';
import { orderErrors } from './errors.ts';
import { initial } from './migrations/0001_initial.ts';
import { invoice } from './migrations/0002_invoice.ts';
import { version } from './migrations/0003_version.ts';
import { orders as table } from './models.ts';

export function orders(): Module {
  return {
    name: 'orders',
    requires: ['accounts', 'webhooks', 'uploads', 'grants'],
    models: [table],
    migrations: [initial, invoice, version],
    errors: orderErrors,
    admin: orderAdmin,
  };
}
