import type { ReactNode } from 'react';
import css from './record.module.css';

export function Card({ children }: { readonly children: ReactNode }) {
  return <div className={css['card']}>{children}</div>;
}
