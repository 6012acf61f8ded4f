import type { Module } from 'kit';
import { orderAdmin } from './admin.ts';
import { orderErrors } from './errors.ts';
import { initial } from './migrations/0001_initial.ts';
import { orders as table } from './models.ts';

export function orders(): Module {
  return {
    name: 'orders',
    requires: ['accounts', 'webhooks'],
    models: [table],
    migrations: [initial],
    errors: orderErrors,
    admin: orderAdmin,
  };
}
