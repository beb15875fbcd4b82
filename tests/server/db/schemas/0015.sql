BEGIN TRANSACTION;
CREATE TABLE accounts (
	owner TEXT NOT NULL, 
	balance BIGINT, 
	spent BIGINT NOT NULL, 
	CONSTRAINT pk_accounts PRIMARY KEY (owner), 
	CONSTRAINT fk_accounts_owner FOREIGN KEY(owner) REFERENCES namespaces (name)
);
INSERT INTO "accounts" VALUES('root',NULL,0);
INSERT INTO "accounts" VALUES('ada',5999997,3);
INSERT INTO "accounts" VALUES('robots',0,0);
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0015');
CREATE TABLE attempt_secrets (
	run_id TEXT NOT NULL, 
	attempt INTEGER NOT NULL, 
	sealed BLOB NOT NULL, 
	CONSTRAINT pk_attempt_secrets PRIMARY KEY (run_id, attempt), 
	CONSTRAINT fk_attempt_secrets_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "attempt_secrets" VALUES('run-73b5ef3c7f',1,X'7365616C6564');
CREATE TABLE audit_entries (
	id TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	user TEXT NOT NULL, 
	action TEXT NOT NULL, 
	target TEXT NOT NULL, 
	details JSON NOT NULL, 
	token_id TEXT NOT NULL, 
	address TEXT NOT NULL, 
	CONSTRAINT pk_audit_entries PRIMARY KEY (id)
);
INSERT INTO "audit_entries" VALUES('aud-8dcf8afd53',1.79488317301286172868e+09,'','token.add','root','{"name": "first login"}','','');
INSERT INTO "audit_entries" VALUES('aud-4304c96cfa',1.79488317804194164278e+09,'root','token.add','root','{"id": "8820f452f6", "name": "", "scopes": ["environments:read", "environments:write", "runs:read", "runs:write", "secrets:write", "inference", "tokens:write", "admin"], "expires_at": 1802659178.040981}','98e6ba1846','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-e95f19ef27',1.79488317811567425728e+09,'root','user.add','ada','{"is_admin": false}','8820f452f6','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-4148c36a19',1.79488317818520855904e+09,'ada','team.add','robots','{}','f6a0b56ec2','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-5a81b8a1f6',1.79488317848995637899e+09,'ada','environment.push','ada/sums@0.1.0','{}','f6a0b56ec2','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-c2bb67d0c0',1.79488317861458826062e+09,'ada','role.set','ada/sums','{"holder": "robots", "role": "read"}','f6a0b56ec2','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-f3f94f3d32',1.79488317866032433506e+09,'ada','secret.add','ada SHARED_KEY','{}','f6a0b56ec2','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-60009ac24d',1.79488317867742848401e+09,'ada','secret.link','ada/sums SHARED_KEY','{}','f6a0b56ec2','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-0055af0e56',1.79488317870109319687e+09,'ada','secret.add','ada/sums SUMS_KEY','{}','f6a0b56ec2','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-0113f1a918',1.794883178713906765e+09,'ada','variable.add','ada/sums REGION','{}','f6a0b56ec2','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-2fdf92afca',1.79488317872780919074e+09,'root','price.set','parrot','{"input_usd_per_million": 1.0, "output_usd_per_million": 2.0, "cached_usd_per_million": null}','8820f452f6','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-ff8a7d5b30',1.79488317873674392693e+09,'root','balance.grant','ada','{"amount_usd": 5.0}','8820f452f6','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-a579e76ed8',1.79488317890210890767e+09,'ada','run.upload','run-5e32189a43','{}','f6a0b56ec2','127.0.0.1');
INSERT INTO "audit_entries" VALUES('aud-a8b17ba6c7',1.79488317919174289699e+09,'ada','run.start','run-73b5ef3c7f','{"environment": "ada/sums", "model": "parrot"}','f6a0b56ec2','127.0.0.1');
CREATE TABLE browser_sessions (
	id TEXT NOT NULL, 
	secret_hash BLOB NOT NULL, 
	token_id TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	expires_at DOUBLE NOT NULL, 
	CONSTRAINT pk_browser_sessions PRIMARY KEY (id), 
	CONSTRAINT fk_browser_sessions_token_id FOREIGN KEY(token_id) REFERENCES tokens (id) ON DELETE CASCADE
);
INSERT INTO "browser_sessions" VALUES('session-1',X'68617368','40c5fa92eb',1.0,2.0);
CREATE TABLE calls (
	id TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	owner TEXT NOT NULL, 
	user TEXT NOT NULL, 
	run_id TEXT, 
	model TEXT NOT NULL, 
	provider TEXT NOT NULL, 
	input_tokens BIGINT NOT NULL, 
	output_tokens BIGINT NOT NULL, 
	cached_tokens BIGINT NOT NULL, 
	cost BIGINT, is_estimate BOOLEAN DEFAULT 0 NOT NULL, 
	CONSTRAINT pk_calls PRIMARY KEY (id)
);
INSERT INTO "calls" VALUES('6898932d67430af3196d',1.79488317877006864548e+09,'ada','ada',NULL,'parrot','scripted',1,1,0,3,0);
CREATE TABLE commit_marks (
	id TEXT NOT NULL, 
	number BIGINT NOT NULL, 
	at DOUBLE NOT NULL, 
	CONSTRAINT pk_commit_marks PRIMARY KEY (id)
);
INSERT INTO "commit_marks" VALUES('connection-1',1,1.0);
CREATE TABLE "creations" (
	caller TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	response BLOB NOT NULL, 
	at DOUBLE NOT NULL, 
	CONSTRAINT pk_creations PRIMARY KEY (caller, "key")
);
INSERT INTO "creations" VALUES('f6a0b56ec2','robots',X'01199F897EC38E4A1DBC9F61153C5F5C9606C98FF049908CFDD9A4C7B6BFCD2797BEA2A1A61DA48CB5455DDB111B45151CC6B108416FCE9706AE9880A89570170E36F931E81D0791192D86CDF84EB14CF63AA4C56D2C60C2D7E183A9F500854D7D49C56CF8C5A26987968045F3CC5E64684C0B6DFE82A3C8A438FB81BA037689F81F72A9AF',1.79488317818578362464e+09);
CREATE TABLE dataset_uploads (
	id TEXT NOT NULL, 
	person TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	name TEXT NOT NULL, 
	format TEXT NOT NULL, 
	size BIGINT NOT NULL, 
	visibility TEXT, 
	description TEXT, 
	created_at DOUBLE NOT NULL, 
	touched_at DOUBLE NOT NULL, 
	CONSTRAINT pk_dataset_uploads PRIMARY KEY (id), 
	CONSTRAINT fk_dataset_uploads_owner FOREIGN KEY(owner) REFERENCES namespaces (name) ON DELETE CASCADE
);
INSERT INTO "dataset_uploads" VALUES('upload-1','ada','ada','more','jsonl',9,NULL,NULL,1.0,1.0);
CREATE TABLE dataset_versions (
	id TEXT NOT NULL, 
	dataset_id TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	sha256 TEXT NOT NULL, 
	size BIGINT NOT NULL, 
	format TEXT NOT NULL, 
	rows BIGINT, 
	columns JSON NOT NULL, 
	pushed_by TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	pushed_at DOUBLE NOT NULL, 
	CONSTRAINT pk_dataset_versions PRIMARY KEY (id), 
	CONSTRAINT fk_dataset_versions_dataset_id FOREIGN KEY(dataset_id) REFERENCES datasets (id) ON DELETE CASCADE, 
	CONSTRAINT uq_dataset_versions_dataset_id_sha256 UNIQUE (dataset_id, sha256)
);
INSERT INTO "dataset_versions" VALUES('content-1','data-1',1,'0000000000000000000000000000000000000000000000000000000000000000',1,'jsonl',1,'["user_prompt"]','ada',1.0,1.0);
CREATE TABLE datasets (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	name TEXT NOT NULL, 
	visibility TEXT NOT NULL, 
	description TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	updated_at DOUBLE NOT NULL, 
	CONSTRAINT pk_datasets PRIMARY KEY (id), 
	CONSTRAINT fk_datasets_owner FOREIGN KEY(owner) REFERENCES namespaces (name), 
	CONSTRAINT uq_datasets_owner_name UNIQUE (owner, name)
);
INSERT INTO "datasets" VALUES('data-1','ada','sums','private','',1.0,1.0);
CREATE TABLE entries (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	amount BIGINT NOT NULL, 
	run_id TEXT, 
	reference TEXT NOT NULL, 
	note TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	CONSTRAINT pk_entries PRIMARY KEY (id), 
	CONSTRAINT fk_entries_owner FOREIGN KEY(owner) REFERENCES namespaces (name), 
	CONSTRAINT uq_entries_reference UNIQUE (reference)
);
INSERT INTO "entries" VALUES('ent-3b5b82132c','ada','grant',5000000,NULL,'grant:f686de1f5faffd5a9a6f','welcome',1.79488317873546218868e+09);
INSERT INTO "entries" VALUES('ent-bc9efcf849','ada','charge',-3,NULL,'calls:6898932d67430af3196d','',1.79488317881814408299e+09);
CREATE TABLE environments (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	name TEXT NOT NULL, 
	visibility TEXT NOT NULL, 
	description TEXT NOT NULL, 
	tags JSON NOT NULL, 
	forked_from TEXT, 
	created_at DOUBLE NOT NULL, 
	updated_at DOUBLE NOT NULL, run_policy TEXT, 
	CONSTRAINT pk_environments PRIMARY KEY (id), 
	CONSTRAINT fk_environments_owner FOREIGN KEY(owner) REFERENCES namespaces (name), 
	CONSTRAINT uq_environments_owner_name UNIQUE (owner, name)
);
INSERT INTO "environments" VALUES('env-ddac8cfc10','ada','sums','public','Says hello.','["hello", "small"]',NULL,1.79488317840309929843e+09,1.79488317844894480703e+09,NULL);
CREATE TABLE events (
	run_id TEXT NOT NULL, 
	seq INTEGER NOT NULL, 
	event BLOB NOT NULL, 
	CONSTRAINT pk_events PRIMARY KEY (run_id, seq), 
	CONSTRAINT fk_events_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "events" VALUES('run-5e32189a43',1,X'7B22736571223A312C226174223A313739343838333137382E383438383031342C226B696E64223A22737461747573222C22737461747573223A2272756E6E696E67227D');
INSERT INTO "events" VALUES('run-5e32189a43',2,X'7B22736571223A322C226174223A312E302C226B696E64223A226C6F67222C226C6576656C223A22494E464F222C2274657874223A2268656C6C6F227D');
INSERT INTO "events" VALUES('run-5e32189a43',3,X'7B22736571223A332C226174223A313739343838333137382E393938313637352C226B696E64223A22726F6C6C6F7574222C22726F6C6C6F7574223A7B227461736B223A2231222C226E756D626572223A302C226F7574636F6D65223A2273636F726564222C22726577617264223A312E302C227365636F6E6473223A302E302C22696E7075745F746F6B656E73223A302C226F75747075745F746F6B656E73223A302C226572726F72223A22227D7D');
INSERT INTO "events" VALUES('run-5e32189a43',4,X'7B22736571223A342C226174223A313739343838333137382E393938313637352C226B696E64223A22726F6C6C6F7574222C22726F6C6C6F7574223A7B227461736B223A2274776F222C226E756D626572223A302C226F7574636F6D65223A226D6F64656C5F6572726F72222C22726577617264223A6E756C6C2C227365636F6E6473223A302E302C22696E7075745F746F6B656E73223A302C226F75747075745F746F6B656E73223A302C226572726F72223A224D6F64656C4572726F723A20227D7D');
INSERT INTO "events" VALUES('run-5e32189a43',5,X'7B22736571223A352C226174223A313739343838333137382E393938313637352C226B696E64223A2270726F6772657373222C2270726F6772657373223A7B22706C616E6E6564223A322C22736574746C6564223A312C2273636F726564223A312C226661696C6564223A312C226D65616E5F726577617264223A312E307D7D');
INSERT INTO "events" VALUES('run-5e32189a43',6,X'7B22736571223A362C226174223A313739343838333137392E3038363633362C226B696E64223A22737461747573222C22737461747573223A2266696E6973686564222C2270726F6772657373223A7B22706C616E6E6564223A6E756C6C2C22736574746C6564223A312C2273636F726564223A312C226661696C6564223A312C226D65616E5F726577617264223A312E307D7D');
INSERT INTO "events" VALUES('run-73b5ef3c7f',1,X'7B22736571223A312C226174223A313739343838333137392E313832323334382C226B696E64223A22737461747573222C22737461747573223A2270656E64696E67227D');
INSERT INTO "events" VALUES('run-73b5ef3c7f',2,X'7B22736571223A322C226174223A313739343838333137392E3139323230362C226B696E64223A226C6F67222C226C6576656C223A225741524E494E47222C2274657874223A224E6F20686F737420697320636F6E6E656374656420746F2074686973207365727665722C20736F207468652072756E2077616974732E20546865207365727665722773206F70657261746F722063616E207374617274206F6E652077697468206070726F63746F722072756E6E6572602C206F72207265737461727420746865207365727665722077697468202D2D72756E732D61742D6F6E63652061626F766520302E227D');
CREATE TABLE holds (
	run_id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	amount BIGINT NOT NULL, 
	CONSTRAINT pk_holds PRIMARY KEY (run_id), 
	CONSTRAINT fk_holds_owner FOREIGN KEY(owner) REFERENCES namespaces (name), 
	CONSTRAINT fk_holds_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "holds" VALUES('run-73b5ef3c7f','ada',1000000);
CREATE TABLE login_codes (
	code_hash BLOB NOT NULL, 
	token_id TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	expires_at DOUBLE NOT NULL, 
	used_at DOUBLE, 
	CONSTRAINT pk_login_codes PRIMARY KEY (code_hash), 
	CONSTRAINT fk_login_codes_token_id FOREIGN KEY(token_id) REFERENCES tokens (id) ON DELETE CASCADE
);
INSERT INTO "login_codes" VALUES(X'2BDE4535FE3FD24538CABA82158DCEECDF05D5D64FE856B52D186FF101859C89','40c5fa92eb',1.7948831730206983089e+09,1.79488677302069830898e+09,NULL);
INSERT INTO "login_codes" VALUES(X'68617368','40c5fa92eb',1.0,2.0,NULL);
CREATE TABLE members (
	team TEXT NOT NULL, 
	user TEXT NOT NULL, 
	role TEXT NOT NULL, 
	CONSTRAINT pk_members PRIMARY KEY (team, user), 
	CONSTRAINT fk_members_team FOREIGN KEY(team) REFERENCES teams (name) ON DELETE CASCADE, 
	CONSTRAINT fk_members_user FOREIGN KEY(user) REFERENCES users (name) ON DELETE CASCADE
);
INSERT INTO "members" VALUES('robots','ada','admin');
CREATE TABLE namespaces (
	name TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	CONSTRAINT pk_namespaces PRIMARY KEY (name)
);
INSERT INTO "namespaces" VALUES('root','user');
INSERT INTO "namespaces" VALUES('ada','user');
INSERT INTO "namespaces" VALUES('robots','team');
CREATE TABLE places (
	id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	run_id TEXT, 
	server TEXT NOT NULL, 
	backend TEXT NOT NULL, 
	status TEXT NOT NULL, 
	message TEXT NOT NULL, 
	spec JSON NOT NULL, 
	created_at DOUBLE NOT NULL, 
	expires_at DOUBLE NOT NULL, 
	ended_at DOUBLE, 
	CONSTRAINT pk_places PRIMARY KEY (id), 
	CONSTRAINT fk_places_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "places" VALUES('box-1','sandbox','ada','run-73b5ef3c7f','server-1','bubblewrap','ended','It was deleted.','{}',1.0,2.0,1.5);
CREATE TABLE prices (
	model TEXT NOT NULL, 
	input DOUBLE NOT NULL, 
	output DOUBLE NOT NULL, 
	cached DOUBLE, 
	CONSTRAINT pk_prices PRIMARY KEY (model)
);
INSERT INTO "prices" VALUES('parrot',1.0,2.0,NULL);
CREATE TABLE reservations (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	run_id TEXT, 
	amount BIGINT NOT NULL, 
	holder TEXT NOT NULL, 
	expires_at DOUBLE NOT NULL, 
	CONSTRAINT pk_reservations PRIMARY KEY (id), 
	CONSTRAINT fk_reservations_owner FOREIGN KEY(owner) REFERENCES namespaces (name)
);
INSERT INTO "reservations" VALUES('res-1','ada','run-73b5ef3c7f',7,'server-1',1.0);
CREATE TABLE roles (
	environment_id TEXT NOT NULL, 
	holder TEXT NOT NULL, 
	role TEXT NOT NULL, 
	CONSTRAINT pk_roles PRIMARY KEY (environment_id, holder), 
	CONSTRAINT fk_roles_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE CASCADE, 
	CONSTRAINT fk_roles_holder FOREIGN KEY(holder) REFERENCES namespaces (name) ON DELETE CASCADE
);
INSERT INTO "roles" VALUES('env-ddac8cfc10','robots','read');
CREATE TABLE rollout_entries (
	run_id TEXT NOT NULL, 
	place INTEGER NOT NULL, 
	entry BLOB NOT NULL, 
	CONSTRAINT pk_rollout_entries PRIMARY KEY (run_id, place), 
	CONSTRAINT fk_rollout_entries_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "rollout_entries" VALUES('run-5e32189a43',1,X'92DC00140100A673636F726564CB3FF0000000000000CB0000000000000000CB000000000000000000000001C081A57269676874CB3FF0000000000000A0A0A0A0A0A0A0A0969400000000C0C0808080');
INSERT INTO "rollout_entries" VALUES('run-5e32189a43',2,X'92DC0014A374776F00AB6D6F64656C5F6572726F72C0CB0000000000000000CB000000000000000000000001C080AA4D6F64656C4572726F72A0A0A0A0A0A0A096940000000084A56572726F72AA4D6F64656C4572726F72A76D657373616765A0A57068617365A0A86C6F636174696F6EA0C0808080');
CREATE TABLE rollouts (
	run_id TEXT NOT NULL, 
	task TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	place INTEGER NOT NULL, 
	settled BOOLEAN NOT NULL, 
	outcome TEXT NOT NULL, 
	reward DOUBLE, 
	seconds DOUBLE NOT NULL, 
	input_tokens BIGINT NOT NULL, 
	output_tokens BIGINT NOT NULL, 
	"row" BLOB NOT NULL, 
	CONSTRAINT pk_rollouts PRIMARY KEY (run_id, task, number), 
	CONSTRAINT fk_rollouts_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "rollouts" VALUES('run-5e32189a43','1',0,1,1,'scored',1.0,0.0,0,0,X'78011DCB410AC0200C44D1AB48D64574DBCB88686885484AB4B420DEBDB1BBF9F06600BEB15E84A164D88DDF0C0813F1DDB59C96AEC415B5A02516CCB0083E517E6F97A9D8A5A4A6668094E35C5F6FDD9C1F750F1CD7');
INSERT INTO "rollouts" VALUES('run-5e32189a43','"two"',0,2,0,'model_error',NULL,0.0,0,0,X'7801AB564AAD48CC2DC8498DCF4C51B252502A29CF57D251502ACACFC9C92F2D018A1800794056727E6E2A483E373F2535273EB5A828BF08A40EC2B052A886B3947C412A5CC10A6A6B01CE1A1F4F');
CREATE TABLE run_comments (
	id TEXT NOT NULL, 
	run_id TEXT NOT NULL, 
	task_key TEXT, 
	number INTEGER, 
	step INTEGER, 
	author TEXT NOT NULL, 
	text TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	edited_at DOUBLE, 
	deleted_at DOUBLE, 
	deleted_by TEXT, 
	CONSTRAINT pk_run_comments PRIMARY KEY (id), 
	CONSTRAINT fk_run_comments_author FOREIGN KEY(author) REFERENCES users (name), 
	CONSTRAINT fk_run_comments_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "run_comments" VALUES('comment-1','run-73b5ef3c7f','0000000000000000',0,NULL,'ada','why?',1.0,NULL,NULL,NULL);
CREATE TABLE run_datasets (
	run_id TEXT NOT NULL, 
	version_id TEXT NOT NULL, 
	CONSTRAINT pk_run_datasets PRIMARY KEY (run_id, version_id), 
	CONSTRAINT fk_run_datasets_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE, 
	CONSTRAINT fk_run_datasets_version_id FOREIGN KEY(version_id) REFERENCES dataset_versions (id) ON DELETE CASCADE
);
INSERT INTO "run_datasets" VALUES('run-73b5ef3c7f','content-1');
CREATE TABLE run_labels (
	run_id TEXT NOT NULL, 
	task TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	person TEXT NOT NULL, 
	score DOUBLE, 
	note TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	CONSTRAINT pk_run_labels PRIMARY KEY (run_id, task, number, person), 
	CONSTRAINT fk_run_labels_person FOREIGN KEY(person) REFERENCES users (name), 
	CONSTRAINT fk_run_labels_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "run_labels" VALUES('run-73b5ef3c7f','0',0,'ada',1.0,'right',1.0);
CREATE TABLE run_links (
	run_id TEXT NOT NULL, 
	link_hash BLOB NOT NULL, 
	sealed BLOB NOT NULL, 
	created_at DOUBLE NOT NULL, 
	CONSTRAINT pk_run_links PRIMARY KEY (run_id), 
	CONSTRAINT fk_run_links_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "run_links" VALUES('run-73b5ef3c7f',X'68617368',X'7365616C6564',1.0);
CREATE TABLE run_origins (
	run_id TEXT NOT NULL, 
	source TEXT NOT NULL, 
	repository TEXT NOT NULL, 
	rollout TEXT NOT NULL, 
	entrypoint TEXT NOT NULL, 
	commit_sha TEXT NOT NULL, 
	branch TEXT NOT NULL, 
	dataset JSON NOT NULL, 
	config_hash TEXT NOT NULL, 
	recipe JSON NOT NULL, 
	CONSTRAINT pk_run_origins PRIMARY KEY (run_id), 
	CONSTRAINT fk_run_origins_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "run_origins" VALUES('run-73b5ef3c7f','ada/agents','/srv/agents','math','main.py','c0ffee','main','{"owner": "ada", "name": "sums", "format": "jsonl", "sha256": "0000000000000000000000000000000000000000000000000000000000000000", "selected_rows": 4}','abc','{}');
CREATE TABLE run_secrets (
	run_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	sealed BLOB NOT NULL, 
	CONSTRAINT pk_run_secrets PRIMARY KEY (run_id, name), 
	CONSTRAINT fk_run_secrets_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "run_secrets" VALUES('run-73b5ef3c7f','OWN_KEY',X'017EFF2854E6A283E19577C30E4BD06960DBC6BBBEE64E7EA0350CA0E1F3E827E30B97');
CREATE TABLE runs (
	id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	name TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	team TEXT, 
	environment_id TEXT, 
	version_id TEXT, 
	environment TEXT NOT NULL, 
	version TEXT, 
	content_hash TEXT, 
	model TEXT NOT NULL, 
	client_run_id TEXT, 
	settings JSON NOT NULL, 
	permissions JSON NOT NULL, 
	timeout_minutes INTEGER, 
	max_cost BIGINT, 
	status TEXT NOT NULL, 
	cause JSON, 
	planned INTEGER, 
	attempt INTEGER NOT NULL, 
	crashes INTEGER NOT NULL, 
	rows_at_crash INTEGER NOT NULL, 
	host TEXT, 
	lease_until DOUBLE, 
	deadline_at DOUBLE, 
	last_batch INTEGER NOT NULL, 
	last_seq INTEGER NOT NULL, 
	settled INTEGER NOT NULL, 
	scored INTEGER NOT NULL, 
	failed INTEGER NOT NULL, 
	reward_sum DOUBLE NOT NULL, 
	cost BIGINT, 
	input_tokens BIGINT NOT NULL, 
	output_tokens BIGINT NOT NULL, 
	metadata JSON NOT NULL, 
	summary JSON, 
	created_at DOUBLE NOT NULL, 
	started_at DOUBLE, 
	ended_at DOUBLE, row_bytes BIGINT DEFAULT '0' NOT NULL, log_bytes BIGINT DEFAULT '0' NOT NULL, visibility TEXT DEFAULT 'private' NOT NULL, score JSON, suite TEXT, tags JSON, note TEXT DEFAULT '' NOT NULL, revision INTEGER DEFAULT '0' NOT NULL, edited_at DOUBLE, editors JSON, 
	CONSTRAINT pk_runs PRIMARY KEY (id), 
	CONSTRAINT fk_runs_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE SET NULL, 
	CONSTRAINT fk_runs_owner FOREIGN KEY(owner) REFERENCES users (name), 
	CONSTRAINT fk_runs_team FOREIGN KEY(team) REFERENCES teams (name), 
	CONSTRAINT fk_runs_version_id FOREIGN KEY(version_id) REFERENCES versions (id) ON DELETE SET NULL, 
	CONSTRAINT uq_runs_owner_client_run_id UNIQUE (owner, client_run_id)
);
INSERT INTO "runs" VALUES('run-5e32189a43','local','','ada',NULL,NULL,NULL,'sums',NULL,NULL,'m','local-1','{"seed": 7}','{}',NULL,NULL,'finished',NULL,NULL,0,0,0,NULL,NULL,NULL,1,6,1,1,1,1.0,NULL,0,0,'{"config": {"seed": 7}, "pass_threshold": 1.0}','{"tasks": 1, "rollouts_per_task": 1, "planned": null, "finished": 2, "scored": 1, "timed_out": 0, "coverage": null, "outcomes": {"scored": 1, "model_error": 1}, "reward": {"mean": 1.0, "se": null, "interval": null, "n": 1}, "bounds": {"low": 0.5, "high": 1.0}, "metrics": {"right": {"mean": 1.0, "se": null, "interval": null, "n": 1}}, "pass_threshold": 1.0, "scores": {"attempts": 2, "graded": 1, "passed": 1, "failed": 1, "skipped": 0, "pass_rate": 0.5, "reward_over_graded": 1.0, "reward_over_all": 0.5}, "pass_at_k": {}, "pass_hat_k": {}, "stop_conditions": {"none": 2}, "seconds": {"median": 0.0, "p90": 0.0, "longest": 0.0}, "usage": {}, "other_usage": {}, "cost_usd": null, "unpriced_models": ["m"], "errors": [{"outcome": "model_error", "kind": "ModelError", "count": 1, "sample": "", "task": "two", "rollout": 0, "phase": "", "location": ""}], "cleanup_errors": [], "retried": 0, "members": {}, "reused_replies": {}, "saved_usd": null, "rewards": null}',1.79488317884880137446e+09,1.79488317884880137446e+09,1.79488317908663606642e+09,1428,69,'private','{"mean": 1.0, "interval": null, "tasks": 1, "coverage": null}',NULL,NULL,'',0,NULL,NULL);
INSERT INTO "runs" VALUES('run-73b5ef3c7f','hosted','nightly','ada',NULL,'env-ddac8cfc10','ver-4a5fee6c52','ada/sums','0.1.0','4639ddff9dd898a47b046be0dad1201993306f6c78ea5f15bc9560f46e064f41','parrot',NULL,'{}','{"sandboxes": false, "instances": false, "network": false}',120,1000000,'pending',NULL,NULL,0,0,0,NULL,NULL,NULL,0,2,0,0,0,0.0,NULL,0,0,'{}',NULL,1.79488317918223476412e+09,NULL,NULL,0,0,'private',NULL,NULL,NULL,'',0,NULL,NULL);
CREATE TABLE seals (
	name TEXT NOT NULL, 
	sealed BLOB NOT NULL, 
	at DOUBLE NOT NULL, 
	CONSTRAINT pk_seals PRIMARY KEY (name)
);
INSERT INTO "seals" VALUES('proof',X'01AFCF958AAF32C5C5C97A5DA425043170D09C44E4BD84B4710143398E8EAD8DD2B666C6',1.79488317281957054137e+09);
CREATE TABLE secret_links (
	environment_id TEXT NOT NULL, 
	secret_id TEXT NOT NULL, 
	CONSTRAINT pk_secret_links PRIMARY KEY (environment_id, secret_id), 
	CONSTRAINT fk_secret_links_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE CASCADE, 
	CONSTRAINT fk_secret_links_secret_id FOREIGN KEY(secret_id) REFERENCES secrets (id) ON DELETE CASCADE
);
INSERT INTO "secret_links" VALUES('env-ddac8cfc10','sec-3059d433e2');
CREATE TABLE secrets (
	id TEXT NOT NULL, 
	owner TEXT, 
	environment_id TEXT, 
	name TEXT NOT NULL, 
	sealed BLOB NOT NULL, 
	description TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	updated_at DOUBLE NOT NULL, 
	CONSTRAINT pk_secrets PRIMARY KEY (id), 
	CONSTRAINT fk_secrets_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE CASCADE, 
	CONSTRAINT fk_secrets_owner FOREIGN KEY(owner) REFERENCES namespaces (name) ON DELETE CASCADE, 
	CONSTRAINT uq_secrets_environment_id_name UNIQUE (environment_id, name), 
	CONSTRAINT uq_secrets_owner_name UNIQUE (owner, name)
);
INSERT INTO "secrets" VALUES('sec-3059d433e2','ada',NULL,'SHARED_KEY',X'01F3974B3BAD776D21D9FBE1A5B03C8D0E87D838324CBB115EC8D62BA104FD658781','',1.79488317865277433394e+09,1.79488317865277433394e+09);
INSERT INTO "secrets" VALUES('sec-005c7d6c1c',NULL,'env-ddac8cfc10','SUMS_KEY',X'01462950C50A72420BAE63CC65A580FD61D27EB8A6246C4006C35BD608A91DB42D6C4AB2C9','of the sums',1.79488317870016789437e+09,1.79488317870016789437e+09);
CREATE TABLE server_settings (
	name TEXT NOT NULL, 
	value TEXT NOT NULL, 
	CONSTRAINT pk_server_settings PRIMARY KEY (name)
);
INSERT INTO "server_settings" VALUES('run_policy','readers');
CREATE TABLE source_builds (
	source_id TEXT NOT NULL, 
	commit_sha TEXT NOT NULL, 
	rollout TEXT NOT NULL, 
	version_id TEXT NOT NULL, 
	files JSON NOT NULL, 
	author TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	CONSTRAINT pk_source_builds PRIMARY KEY (source_id, commit_sha, rollout), 
	CONSTRAINT fk_source_builds_source_id FOREIGN KEY(source_id) REFERENCES sources (id) ON DELETE CASCADE, 
	CONSTRAINT fk_source_builds_version_id FOREIGN KEY(version_id) REFERENCES versions (id) ON DELETE CASCADE
);
INSERT INTO "source_builds" VALUES('src-1','c0ffee','math','ver-4a5fee6c52','["main.py"]','Ada','Begin');
CREATE TABLE source_commits (
	source_id TEXT NOT NULL, 
	commit_sha TEXT NOT NULL, 
	author TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	committed_at DOUBLE NOT NULL, 
	rollouts JSON NOT NULL, 
	recipes JSON NOT NULL, 
	fetched_at DOUBLE NOT NULL, 
	CONSTRAINT pk_source_commits PRIMARY KEY (source_id, commit_sha), 
	CONSTRAINT fk_source_commits_source_id FOREIGN KEY(source_id) REFERENCES sources (id) ON DELETE CASCADE
);
INSERT INTO "source_commits" VALUES('src-1','c0ffee','Ada','Begin',1.0,'["math"]','[]',1.0);
CREATE TABLE source_syncs (
	id TEXT NOT NULL, 
	source_id TEXT NOT NULL, 
	cause TEXT NOT NULL, 
	branch TEXT NOT NULL, 
	status TEXT NOT NULL, 
	log JSON NOT NULL, 
	commit_sha TEXT NOT NULL, 
	started_at DOUBLE NOT NULL, 
	ended_at DOUBLE, 
	CONSTRAINT pk_source_syncs PRIMARY KEY (id), 
	CONSTRAINT fk_source_syncs_source_id FOREIGN KEY(source_id) REFERENCES sources (id) ON DELETE CASCADE
);
INSERT INTO "source_syncs" VALUES('sync-1','src-1','ada','main','done','[]','c0ffee',1.0,2.0);
CREATE TABLE sources (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	name TEXT NOT NULL, 
	url TEXT NOT NULL, 
	repository TEXT NOT NULL, 
	sealed BLOB NOT NULL, 
	has_credentials BOOLEAN NOT NULL, 
	known_hosts TEXT NOT NULL, 
	branch TEXT NOT NULL, 
	commit_sha TEXT NOT NULL, 
	author TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	committed_at DOUBLE, 
	rollouts JSON NOT NULL, 
	problem TEXT NOT NULL, 
	synced_at DOUBLE, 
	created_at DOUBLE NOT NULL, branches JSON DEFAULT '[]' NOT NULL, history JSON DEFAULT '[]' NOT NULL, 
	CONSTRAINT pk_sources PRIMARY KEY (id), 
	CONSTRAINT fk_sources_owner FOREIGN KEY(owner) REFERENCES namespaces (name) ON DELETE CASCADE, 
	CONSTRAINT uq_sources_owner_name UNIQUE (owner, name)
);
INSERT INTO "sources" VALUES('src-1','ada','agents','file:///srv/agents','/srv/agents',X'7365616C6564',0,'','main','c0ffee','Ada','Begin',NULL,'["math"]','',NULL,1.0,'[]','[]');
CREATE TABLE teams (
	id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	CONSTRAINT pk_teams PRIMARY KEY (id), 
	CONSTRAINT fk_teams_name FOREIGN KEY(name) REFERENCES namespaces (name), 
	CONSTRAINT uq_teams_name UNIQUE (name)
);
INSERT INTO "teams" VALUES('team-11e560c53c','robots',1.79488317818377852443e+09);
CREATE TABLE tokens (
	id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	secret_hash BLOB NOT NULL, 
	user TEXT, 
	run_id TEXT, 
	attempt INTEGER, 
	name TEXT NOT NULL, 
	scopes JSON NOT NULL, 
	created_at DOUBLE NOT NULL, 
	expires_at DOUBLE, 
	last_used_at DOUBLE, 
	revoked_at DOUBLE, host_key_hash BLOB, 
	CONSTRAINT pk_tokens PRIMARY KEY (id), 
	CONSTRAINT fk_tokens_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE, 
	CONSTRAINT fk_tokens_user FOREIGN KEY(user) REFERENCES users (name) ON DELETE CASCADE
);
INSERT INTO "tokens" VALUES('98e6ba1846','first',X'D6AE74423795782FBC27B62B838C44E4C9C15A157BE1AD385FE5C88FA1B51129','root',NULL,NULL,'first login','["environments:read", "environments:write", "runs:read", "runs:write", "secrets:write", "inference", "tokens:write", "admin"]',1.79488317301096725461e+09,NULL,1.79488317797229480739e+09,1.79488317801516294482e+09,NULL);
INSERT INTO "tokens" VALUES('40c5fa92eb','user',X'0E7A691BC8C813D8866A68AD0F14BA2FFBAFF1A91A133EDBD258608FE296336D','root',NULL,NULL,'dashboard','["environments:read", "environments:write", "runs:read", "runs:write", "secrets:write", "inference", "tokens:write", "admin"]',1.79488317302091193198e+09,1.80265917302069830895e+09,NULL,NULL,NULL);
INSERT INTO "tokens" VALUES('8820f452f6','user',X'552DC16D5ADFAAFC8A2356386383F2EB88EAF53F76FF1E64586F3F7F069A2C0A','root',NULL,NULL,'','["environments:read", "environments:write", "runs:read", "runs:write", "secrets:write", "inference", "tokens:write", "admin"]',1.79488317804104185104e+09,1.80265917804098105437e+09,1.7948831781036198139e+09,NULL,NULL);
INSERT INTO "tokens" VALUES('f6a0b56ec2','user',X'AB9ADDCCAE51032AEA80AEEDB5CADD0786FA4D6CEACB203910C3CBFBDE415684','ada',NULL,NULL,'first','["environments:read", "environments:write", "runs:read", "runs:write", "secrets:write", "inference", "tokens:write"]',1794883178.11492,1.8026591781143846512e+09,1.79488317815996766086e+09,NULL,NULL);
CREATE TABLE users (
	id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	is_admin BOOLEAN NOT NULL, 
	created_at DOUBLE NOT NULL, 
	disabled_at DOUBLE, 
	CONSTRAINT pk_users PRIMARY KEY (id), 
	CONSTRAINT fk_users_name FOREIGN KEY(name) REFERENCES namespaces (name), 
	CONSTRAINT uq_users_name UNIQUE (name)
);
INSERT INTO "users" VALUES('usr-85bf569c7a','root',1,1.79488317299928617481e+09,NULL);
INSERT INTO "users" VALUES('usr-de9dab376b','ada',0,1.79488317811438465119e+09,NULL);
CREATE TABLE variables (
	id TEXT NOT NULL, 
	environment_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	value TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	updated_at DOUBLE NOT NULL, 
	CONSTRAINT pk_variables PRIMARY KEY (id), 
	CONSTRAINT fk_variables_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE CASCADE, 
	CONSTRAINT uq_variables_environment_id_name UNIQUE (environment_id, name)
);
INSERT INTO "variables" VALUES('var-231ee9d793','env-ddac8cfc10','REGION','north',1.79488317871157574646e+09,1.79488317871157574646e+09);
CREATE TABLE version_tasks (
	version_id TEXT NOT NULL, 
	place INTEGER NOT NULL, 
	slug TEXT NOT NULL, 
	task BLOB NOT NULL, 
	CONSTRAINT pk_version_tasks PRIMARY KEY (version_id, place), 
	CONSTRAINT fk_version_tasks_version_id FOREIGN KEY(version_id) REFERENCES versions (id) ON DELETE CASCADE
);
INSERT INTO "version_tasks" VALUES('ver-4a5fee6c52',0,'sum',X'7B7D');
CREATE TABLE versions (
	id TEXT NOT NULL, 
	environment_id TEXT NOT NULL, 
	version TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	content_hash TEXT NOT NULL, 
	wheel_name TEXT NOT NULL, 
	wheel_sha256 TEXT NOT NULL, 
	wheel_size BIGINT NOT NULL, 
	source_sha256 TEXT NOT NULL, 
	source_size BIGINT NOT NULL, 
	requires_python TEXT NOT NULL, 
	dependencies JSON NOT NULL, 
	secrets JSON NOT NULL, 
	files JSON NOT NULL, 
	metadata_text TEXT NOT NULL, 
	pushed_by TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	check_status TEXT NOT NULL, 
	check_message TEXT NOT NULL, 
	check_log TEXT NOT NULL, 
	check_tasks INTEGER, 
	check_seconds DOUBLE, 
	check_facts JSON NOT NULL, 
	check_lease_until DOUBLE, 
	check_host TEXT, 
	check_leases INTEGER NOT NULL, 
	lock TEXT, check_details BLOB, 
	CONSTRAINT pk_versions PRIMARY KEY (id), 
	CONSTRAINT fk_versions_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE CASCADE, 
	CONSTRAINT uq_versions_environment_id_version UNIQUE (environment_id, version)
);
INSERT INTO "versions" VALUES('ver-4a5fee6c52','env-ddac8cfc10','0.1.0',1,'4639ddff9dd898a47b046be0dad1201993306f6c78ea5f15bc9560f46e064f41','sums-0.1.0-py3-none-any.whl','aa548a3959feaa1b137192810a0082efbd97f36b0d23f6bae4370698bd265da7',918,'eaf5d961b05865da55e0f7e1d143e9a61d82cf9eb35778e1d22c45df77ee5d40',217,'>=3.10','[]','[]','[["pyproject.toml", 42], ["sums.py", 60]]','Metadata-Version: 2.1
Name: sums
Version: 0.1.0
Summary: Says hello.
Requires-Python: >=3.10
Keywords: hello,small
','ada',1.79488317844115877154e+09,'pending','','',NULL,NULL,'{}',NULL,NULL,0,NULL,NULL);
CREATE INDEX ix_calls_owner ON calls (owner, at);
CREATE INDEX ix_calls_run_id ON calls (run_id);
CREATE INDEX ix_entries_owner ON entries (owner, at);
CREATE INDEX ix_runs_created_at ON runs (created_at, id);
CREATE INDEX ix_runs_environment_id ON runs (environment_id);
CREATE INDEX ix_runs_owner ON runs (owner, started_at);
CREATE INDEX ix_runs_status ON runs (status);
CREATE INDEX ix_holds_owner ON holds (owner);
CREATE INDEX ix_places_run_id ON places (run_id);
CREATE INDEX ix_rollouts_place ON rollouts (run_id, place);
CREATE INDEX ix_tokens_run_id ON tokens (run_id);
CREATE INDEX ix_tokens_user ON tokens (user);
CREATE INDEX ix_reservations_owner ON reservations (owner);
CREATE INDEX ix_reservations_holder ON reservations (holder);
CREATE INDEX ix_dataset_versions_pushed_by ON dataset_versions (pushed_by);
CREATE INDEX ix_dataset_versions_sha256 ON dataset_versions (sha256);
CREATE INDEX ix_run_datasets_version_id ON run_datasets (version_id);
CREATE INDEX ix_run_origins_repository ON run_origins (repository);
CREATE INDEX ix_run_origins_config_hash ON run_origins (config_hash);
CREATE INDEX ix_browser_sessions_token_id ON browser_sessions (token_id);
CREATE INDEX ix_login_codes_token_id ON login_codes (token_id);
CREATE INDEX ix_runs_suite ON runs (suite);
CREATE INDEX ix_run_labels_person ON run_labels (person);
CREATE INDEX ix_runs_edited_at ON runs (edited_at);
CREATE INDEX ix_run_comments_run_id ON run_comments (run_id, created_at, id);
CREATE INDEX ix_run_comments_author ON run_comments (author);
CREATE INDEX ix_audit_entries_at ON audit_entries (at, id);
CREATE INDEX ix_audit_entries_user ON audit_entries (user, at);
CREATE INDEX ix_dataset_uploads_person ON dataset_uploads (person);
CREATE INDEX ix_source_syncs_source_id ON source_syncs (source_id, started_at);
COMMIT;
