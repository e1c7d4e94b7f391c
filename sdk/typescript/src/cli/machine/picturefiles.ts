/** Pictures that an instruction shows, written to numbered files. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";

import type { Bundle } from "../../results.js";
import { LocalTrouble } from "../failures.js";
import { say } from "../output.js";
import { isSystemError, reason } from "../systemerrors.js";

const SVG = "image/svg+xml";
const ENDINGS: Readonly<Record<string, string>> = { "image/png": "png", "image/jpeg": "jpg", [SVG]: "svg" };
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

export class PictureFiles {
  readonly saved: string[] = [];

  constructor(private readonly folder: string, private readonly stem: string) {}

  /** In the first format that there is of it. */
  save(bundle: Bundle): void {
    for (const [mime, ending] of Object.entries(ENDINGS)) {
      const content = bytesOf(mime, bundle[mime]);
      if (content === undefined) continue;
      const path = join(this.folder, `${this.stem}-${String(this.saved.length + 1)}.${ending}`);
      write(path, content);
      this.saved.push(path);
      say(`everforge: wrote ${path}`);
      return;
    }
  }
}

/** undefined: it is not a picture, whatever it says. */
function bytesOf(mime: string, content: unknown): Buffer | undefined {
  if (typeof content !== "string") return undefined;
  if (mime === SVG) return Buffer.from(content.replace(/\p{Cs}/gu, "?"), "utf8");
  return content !== "" && BASE64.test(content) ? Buffer.from(content, "base64") : undefined;
}

function write(path: string, content: Buffer): void {
  try {
    writeFileSync(path, content);
  } catch (error) {
    throw isSystemError(error) ? new LocalTrouble(`${error.path ?? path}: ${reason(error)}`) : error;
  }
}
