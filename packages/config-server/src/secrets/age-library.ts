import { createRequire } from 'node:module';
import type * as Age from 'age-encryption';

export type AgeLibrary = typeof Age;

/**
 * The package `age-encryption`, or undefined when it is not installed: servers without encrypted values need not have it.
 * It is loaded synchronously, so that an identity is checked where server.toml is read.
 */
export function loadAge(): AgeLibrary | undefined {
  try {
    return createRequire(import.meta.url)('age-encryption') as AgeLibrary;
  } catch {
    return undefined;
  }
}
