import { followGenerations, RemoteSource } from '@kit/config-server/client';
import { service, singleton } from 'kit/di';
import { join } from 'node:path';
import { z } from 'zod';
import { configSection, dataFolder } from './config.ts';

const Settings = z.object({
  currency: z.string().length(3).default('EUR'),
  unit_price: z
    .string()
    .regex(/^\d{1,9}\.\d{2}$/)
    .default('12.50'),
  quantity_max: z.int().min(1).max(10_000).default(100),
  /** For the API of the carrier. Encrypted in the file, so a string that is still a ciphertext is a mistake. */
  carrier_key: z
    .string()
    .regex(/^(?!ENC\[)/)
    .optional(),
});

export type Settings = z.infer<typeof Settings>;

/** The newest settings. A change on the configuration server shows in the next request. */
export interface LiveSettings {
  readonly current: Settings;
  stop(): void;
}

export const settings = service<LiveSettings>('settings');

async function open(): Promise<LiveSettings> {
  const given = configSection();
  if (given === undefined) return { current: Settings.parse({}), stop: () => undefined };
  const section = { ...given, application: 'orders' };
  const source = new RemoteSource({ ...section, cacheFile: join(dataFolder, 'settings.cache') });
  await source.refresh();
  const live = { current: Settings.parse(source.current ?? {}), stop: () => stopped.abort() };
  const stopped = new AbortController();
  const follow = async (): Promise<void> => {
    for await (const _ of followGenerations({ ...section, signal: stopped.signal })) {
      if (!(await source.refresh()).changed) continue;
      // A document that is not ours to understand changes nothing: the last good settings hold.
      const next = Settings.safeParse(source.current);
      if (next.success) live.current = next.data;
    }
  };
  follow().catch(() => undefined);
  return live;
}

export const liveSettings = singleton(settings, {}, open, { dispose: (live) => live.stop() });
