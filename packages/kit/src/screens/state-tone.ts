import type { AdminTone } from '../app/admin/shapes.ts';

/** Words that states are called by everywhere, and how they matter to an operator. */
const WORDS: Readonly<Record<Exclude<AdminTone, 'neutral'>, readonly string[]>> = {
  good: [
    'accepted',
    'active',
    'approved',
    'available',
    'complete',
    'completed',
    'confirmed',
    'delivered',
    'done',
    'enabled',
    'ok',
    'online',
    'paid',
    'passed',
    'published',
    'ready',
    'resolved',
    'shipped',
    'succeeded',
    'success',
    'verified',
  ],
  info: ['asked', 'in_progress', 'new', 'open', 'processing', 'queued', 'running', 'sent', 'started'],
  warning: [
    'cancelled',
    'canceled',
    'delayed',
    'expired',
    'expiring',
    'held',
    'on_hold',
    'overdue',
    'paused',
    'pending',
    'suspended',
    'waiting',
  ],
  bad: [
    'blocked',
    'bounced',
    'declined',
    'denied',
    'error',
    'failed',
    'failing',
    'fraud',
    'lost',
    'refused',
    'rejected',
    'revoked',
    'unpaid',
  ],
};

const TONES: ReadonlyMap<string, AdminTone> = new Map(
  Object.entries(WORDS).flatMap(([tone, words]) => words.map((word) => [word, tone as AdminTone] as const)),
);

/** The color of a state that no declaration gives one. */
export function stateTone(value: string): AdminTone {
  return TONES.get(value.toLowerCase().replaceAll(/[\s-]+/g, '_')) ?? 'neutral';
}
