import { peerUrl } from '../../../harness/peers.ts';

/** A package of the peers' folder; CommonJS and ES modules alike. */
// oxlint-disable-next-line typescript/no-explicit-any -- peers are not installed when this is compiled
export async function loadPeer(folder: string, name: string): Promise<any> {
  const loaded = (await import(peerUrl(folder, name))) as { default?: object };
  return { ...loaded.default, ...loaded };
}
