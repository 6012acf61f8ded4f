import type { Authenticator } from '../../packages/kit/src/auth/request/authenticator.ts';
import { createApp, migrateApp, type App, type AppOptions } from '../../packages/kit/src/app/index.ts';

/** Everybody is owner number 1 unless the header `x-owner` says another. */
export function benchOwner(index: number): string {
  return `00000000-0000-7000-8000-${String(index).padStart(12, '0')}`;
}

const byHeader: Authenticator = {
  name: 'bench',
  securityScheme: { type: 'http', scheme: 'none' },
  authenticate({ headers }) {
    const index = Number(headers['x-owner'] ?? 1);
    const user = { id: benchOwner(index), username: `owner-${index}`, email: null, is_active: true, is_staff: false, is_superuser: false };
    return { user, scheme: 'bench', scopes: null };
  },
};

/** An app in this process, migrated and ready, without logs; it listens when it is told to. */
export async function startCrudApp(
  options: Pick<AppOptions, 'database' | 'modules' | 'mount' | 'resources' | 'idempotencyRecordsMax'>,
): Promise<App> {
  const app = createApp({
    ...options,
    authenticators: [byHeader],
    settings: { cursorKeys: Buffer.alloc(32, 7).toString('base64url') },
    log: { level: 'silent' },
    // Their `traceparent` decides what is recorded: see tracing-overhead.
    trustedProxies: ['127.0.0.1'],
    docs: false,
  });
  await migrateApp(app);
  return app.ready();
}
